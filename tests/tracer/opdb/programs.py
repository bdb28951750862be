"""Programs for ops that no database of samples reaches and that made-up arguments do not suit:
running statistics, loss scaling, packed sequences, masks, quantised and mkldnn tensors.
"""

import torch
import torch.nn.functional as F
import torch.utils.mkldnn
from torch.nn.utils import rnn

from watch import unwatched

aten = torch.ops.aten


def running_statistics():
    x, weight, bias = torch.randn(4, 3, 5), torch.ones(3), torch.zeros(3)
    mean, variance = torch.zeros(3), torch.ones(3)
    aten.batch_norm_update_stats(x, mean, variance, 0.1)
    aten._batch_norm_no_update(x, weight, bias, mean, variance, 0.1, 1e-5)
    aten._native_batch_norm_legit_no_training(x, weight, bias, mean, variance, 0.1, 1e-5)
    saved = aten._batch_norm_impl_index(x, weight, bias, mean, variance, True, 0.1, 1e-5, False)
    aten._batch_norm_impl_index_backward(
        saved[4], x, x, weight, mean, variance, saved[1], saved[2], True, 1e-5, [True] * 3, saved[3]
    )
    with unwatched():  # a Parameter can be made only where nothing watches
        norm = torch.nn.BatchNorm1d(3)
    torch.optim.swa_utils.update_bn([x], norm)


def mkldnn_tensors():
    with unwatched():
        layers = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
        model = torch.utils.mkldnn.to_mkldnn(torch.nn.Sequential(*layers).eval())
    x = torch.randn(2, 3, 8, 8).to_mkldnn()
    model(x)
    statistics = torch.ones(3).to_mkldnn(), torch.ones(3).to_mkldnn()
    F.batch_norm(x, *statistics, *statistics, training=True)
    F.max_pool2d(x, 2)
    F.adaptive_avg_pool2d(x, 4)


def loss_scaling():
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
        parameter = torch.randn(3, 4, requires_grad=True)
        scaler = torch.amp.GradScaler("cpu")
        step = optimizer([parameter], lr=torch.tensor(0.1), fused=True)
        for _ in range(2):
            scaler.scale(parameter.square().sum()).backward()
            scaler.step(step)
            scaler.update()


def packed_sequences():
    x = torch.randn(2, 5, 3, requires_grad=True)
    with unwatched():  # a Parameter can be made only where nothing watches
        kinds = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
        layers = [kind(3, 4, batch_first=True) for kind in kinds]
        layers.append(torch.nn.RNN(3, 4, nonlinearity="relu", batch_first=True))
        layers.append(torch.nn.LSTM(3, 4, 2, dropout=0.5, bidirectional=True, batch_first=True))
    for layer in layers:
        output, _ = layer(rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True))
        rnn.pad_packed_sequence(output, batch_first=True)[0].sum().backward()


def masks_and_indices():
    x, mask = torch.randn(4, 4), torch.eye(4) > 0
    x[mask]
    aten._reshape_from_tensor(x, torch.tensor([2, 8]))
    x[mask] = 2.0
    x[:, torch.tensor([0, 2])] += 1
    bool(x.sum() > 0)
    torch.is_nonzero(x[0, 0])
    torch.masked.sum(x, mask=mask)
    F.embedding(torch.tensor([0, 2]), x, max_norm=0.1)
    F.embedding_bag(torch.tensor([0, 2, 1]), x, torch.tensor([0, 1]))
    torch._rowwise_prune(x, mask[0], torch.int32)
    torch.tensor_split(x, torch.tensor([1, 3]))
    torch.repeat_interleave(x, torch.tensor([1, 2, 1, 1]), dim=0)
    torch.nested.nested_tensor([x, x[:2]]).to_padded_tensor(0.0)
    aten._nested_tensor_from_mask_left_aligned(torch.randn(2, 3, 4), torch.ones(2, 3).tril() > 0)


def sparse_gradients():
    weight = torch.randn(4, 3, requires_grad=True)
    F.embedding(torch.tensor([0, 2]), weight, sparse=True).sum().backward()
    bags = torch.tensor([0, 2, 1]), weight, torch.tensor([0, 1])
    F.embedding_bag(*bags, sparse=True, mode="sum").sum().backward()


def losses():
    logs = torch.randn(6, 2, 5).log_softmax(2).requires_grad_()
    lengths = torch.tensor([6, 6]), torch.tensor([3, 2])
    targets = torch.tensor([[1, 2, 3], [1, 4, 0]])
    F.ctc_loss(logs, targets, *lengths).backward()
    aten.ctc_loss.Tensor(logs, targets, *lengths)
    aten._ctc_loss.Tensor(logs, targets, *lengths)


def inference():
    with unwatched():
        layer = torch.nn.TransformerEncoderLayer(8, 2, dim_feedforward=8, batch_first=True).eval()
    with torch.no_grad():
        layer(torch.randn(2, 3, 8))
    torch.quasirandom.SobolEngine(3, scramble=True, seed=0).draw(4)


def quantised():
    x, scale, zero = torch.randn(4, 3), torch.full((4,), 0.1), torch.zeros(4, dtype=torch.int64)
    per_channel = torch.quantize_per_channel(x, scale, zero, 0, torch.qint8)
    aten.q_per_channel_axis(per_channel)
    aten.q_per_channel_scales(per_channel)
    whole = torch.quantize_per_tensor(torch.randn(2, 3, 4, 4), 0.1, 0, torch.quint8)
    statistics = torch.zeros(3), torch.ones(3)
    aten.quantized_batch_norm(whole, *statistics, *statistics, 1e-5, 0.1, 0)
    torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
    torch.ao.nn.quantized.dynamic.Linear(3, 2)(x)
    torch.ao.nn.quantized.dynamic.LSTM(3, 2)(x[None])
    torch.ao.nn.quantized.dynamic.GRU(3, 2)(x[None])
    packed = rnn.pack_padded_sequence(x[:, None], torch.tensor([4]))
    torch.ao.nn.quantized.dynamic.LSTM(3, 2)(packed)
    torch.ao.nn.quantized.dynamic.GRU(3, 2)(packed)


def fake_quantised():
    x = torch.randn(4, 3, requires_grad=True)
    scale, zero = torch.full((4,), 0.1), torch.zeros(4)
    torch.fake_quantize_per_channel_affine(x, scale, zero.int(), 0, 0, 255).sum().backward()
    torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255).sum().backward()
    torch.fake_quantize_per_tensor_affine(x, scale[0], zero[0].int(), 0, 255)
    torch._fake_quantize_learnable_per_channel_affine(x, scale, zero, 0, 0, 255).sum().backward()
    torch._fake_quantize_learnable_per_tensor_affine(x, scale[:1], zero[:1], 0, 255)
    torch.ao.quantization.FusedMovingAvgObsFakeQuantize()(x)


def sparse_products():
    x = torch.eye(4)
    torch.smm(x.to_sparse(), x)
    torch.hspmm(x.to_sparse(), x)
    torch.sspaddmm(x.to_sparse(), x.to_sparse(), x)
    torch.sparse.spdiags(torch.ones(2, 4), torch.tensor([0, 1]), (4, 4))
    torch.sparse.softmax(x.to_sparse(), 1)


PROGRAMS = (
    running_statistics,
    mkldnn_tensors,
    loss_scaling,
    packed_sequences,
    masks_and_indices,
    sparse_gradients,
    losses,
    inference,
    quantised,
    fake_quantised,
    sparse_products,
)
