"""Writes what torch makes of the cases of tests/nn: functions, their gradients, and training.

    torch_cases.py FILE          exits with 77 where torch or safetensors is not installed

A safetensors file with the tensors "CASE|DTYPE|PART": input.0, result.0, cotangent.0, gradient.0
(of inputs that want one), and for optimizers "step.N.w", "step.N.b", "step.N.loss".
functional_cases.cpp and optimize_test.cpp have the same cases by the same names.
"""

import sys

try:
    import torch
    import torch.nn.functional as F
    from safetensors.torch import save_file
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# ---- inputs -------------------------------------------------------------------------------------


class Floats:
    """Random numbers; `low` and `high`, if given, bound them. A constant wants no gradient."""

    def __init__(self, *sizes, low=None, high=None, constant=False):
        self.sizes, self.low, self.high, self.constant = sizes, low, high, constant

    def make(self, dtype):
        if self.low is None:
            x = torch.randn(self.sizes, dtype=torch.float64)
        else:
            x = self.low + (self.high - self.low) * torch.rand(self.sizes, dtype=torch.float64)
        return x.to(dtype).requires_grad_(not self.constant)


class Special(Floats):
    """NaN, infinities, both zeros and one."""

    VALUES = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0]

    def make(self, dtype):
        return torch.tensor(self.VALUES, dtype=dtype).requires_grad_()


class Given:
    """Integers or bools."""

    def __init__(self, values):
        self.values = values

    def make(self, dtype):
        return torch.tensor(self.values)


def f(*sizes):
    return Floats(*sizes)


def const(*sizes, low=None, high=None):
    return Floats(*sizes, low=low, high=high, constant=True)


LABELS = Given([2, 0, 3])
MASK = Given([[True, False, True, True], [True, True, False, True], [False, True, True, True]])
X1, X2, X3 = f(2, 4, 9), f(2, 4, 7, 6), f(1, 2, 4, 5, 4)

# ---- functions ----------------------------------------------------------------------------------


def last(function, axes):
    """`function` on inputs whose channels come last."""
    return lambda x, *rest: function(x.movedim(-1, -1 - axes), *rest).movedim(-1 - axes, -1)


def batch_norm(x, mean, var, weight, bias):
    mean, var = mean.clone(), var.clone()
    y = F.batch_norm(x, mean, var, weight, bias, training=True, momentum=0.3)
    return y, mean, var


def dropout(x, uniform, p):
    keep = uniform < 1 - p
    return torch.where(keep, x / (1 - p), 0)


def attention(x, q, qb, k, kb, v, vb, o, ob, causal=False):
    return F.multi_head_attention_forward(
        *3 * (x.transpose(0, 1),), 6, 2, None, torch.cat([qb, kb, vb]),
        None, None, False, 0.0, o, ob, need_weights=False, use_separate_proj_weight=True,
        q_proj_weight=q, k_proj_weight=k, v_proj_weight=v, is_causal=causal,
        attn_mask=torch.triu(torch.full((5, 5), -torch.inf, dtype=x.dtype), 1) if causal else None,
    )[0].transpose(0, 1)


def encoder(x, *p, norm_first):
    a, (w1, b1, w2, b2, n1, c1, n2, c2) = p[:8], p[8:]
    norm1 = lambda y: F.layer_norm(y, (6,), n1, c1)
    norm2 = lambda y: F.layer_norm(y, (6,), n2, c2)
    fed = lambda y: F.linear(F.gelu(F.linear(y, w1, b1)), w2, b2)
    if norm_first:
        h = x + attention(norm1(x), *a)
        return h + fed(norm2(h))
    h = norm1(x + attention(x, *a))
    return norm2(h + fed(h))


def weight(*sizes):
    return Floats(*sizes, low=-0.5, high=0.5)


ATTENTION = [f(2, 5, 6)] + [weight(6, 6), f(6)] * 4
ENCODER = ATTENTION + [weight(10, 6), f(10), weight(6, 10), f(6)] + [f(6)] * 4


def resnet(x, *p):
    """Two basic blocks, the first with stride 2 and a downsampling convolution."""
    norm = lambda y, q: F.batch_norm(y, q[2], q[3], q[0], q[1])
    conv = lambda y, q, stride: norm(F.conv2d(y, q[0], None, stride, q[0].shape[-1] // 2), q[1:])
    h = conv(F.relu(conv(x, p[0:5], 2)), p[5:10], 1)
    x = F.relu(h + conv(x, p[10:15], 2))
    h = conv(F.relu(conv(x, p[15:20], 1)), p[20:25], 1)
    return F.relu(h + x)


def conv_norm(out, inner, kernel):
    return [f(out, inner, kernel, kernel), f(out), f(out), const(out), const(out, low=0.5, high=2)]


RESNET = [f(2, 3, 6, 6)] + conv_norm(4, 3, 3) + conv_norm(4, 4, 3) + conv_norm(4, 3, 1)
RESNET += conv_norm(4, 4, 3) + conv_norm(4, 4, 3)

def recurrent(module, layers, **options):
    """The module's function of x, the initial states, and its parameters."""

    def function(x, *rest):
        states = 2 if module is torch.nn.LSTM else 1
        network = module(4, 3, layers, dtype=x.dtype, **options)
        names = [name for name, _ in network.named_parameters()]
        h = rest[:2] if states == 2 else rest[0]
        parameters = dict(zip(names, rest[states:], strict=True))
        output, last = torch.func.functional_call(network, parameters, (x, h))
        return output, *(last if states == 2 else (last,))

    return function


RNN = [f(5, 2, 4), f(1, 2, 3), weight(3, 4), weight(3, 3), f(3), f(3)]
GRU = [f(2, 5, 4), f(4, 2, 3)]
GRU += 2 * [weight(9, 4), weight(9, 3), f(9), f(9)] + 2 * [weight(9, 6), weight(9, 3), f(9), f(9)]
LSTM = [f(5, 2, 4), f(2, 2, 3), f(2, 2, 3), weight(12, 4), *3 * [weight(12, 3)]]

FUNCTIONS = {
    "gelu": (F.gelu, [X1]),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), [X1]),
    "silu": (F.silu, [X1]),
    "mish": (F.mish, [X1]),
    "relu": (F.relu, [X1]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), [X1]),
    "prelu": (F.prelu, [X1, f(4)]),
    "elu": (lambda x: F.elu(x, 0.7), [X1]),
    "selu": (F.selu, [X1]),
    "celu": (lambda x: F.celu(x, 0.5), [X1]),
    "relu6": (lambda x: F.relu6(x * 4), [X1]),
    "hardtanh": (lambda x: F.hardtanh(x, -0.5, 0.8), [X1]),
    "hardsigmoid": (lambda x: F.hardsigmoid(x * 3), [X1]),
    "hardswish": (lambda x: F.hardswish(x * 3), [X1]),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), [X1]),
    "softshrink": (lambda x: F.softshrink(x, 0.4), [X1]),
    "tanhshrink": (F.tanhshrink, [X1]),
    "softsign": (F.softsign, [X1]),
    "softplus": (lambda x: F.softplus(x, 2.0, 3.0), [X1]),
    "logsigmoid": (F.logsigmoid, [X1]),
    "threshold": (lambda x: F.threshold(x, 0.1, 7.0), [X1]),
    "glu": (lambda x: F.glu(x, 1), [X1]),
    "softmax": (lambda x: F.softmax(x, 1), [X1]),
    "softmin": (lambda x: F.softmin(x, -1), [X1]),
    "log_softmax": (lambda x: F.log_softmax(x, -1), [X1]),
    "conv1d": (F.conv1d, [X1, f(6, 4, 3)]),
    "conv1d seed": (lambda x, w: F.conv1d(x, w, None, 2, 3), [f(1, 3, 28), f(32, 3, 5)]),
    "conv1d last": (
        last(lambda x, w, b: F.conv1d(x, w, b, 2, 1), 1),
        [f(2, 9, 4), f(6, 4, 3), f(6)],
    ),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b), [X2, f(6, 4, 3, 2), f(6)]),
    "conv2d options": (
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2),
        [X2, f(6, 2, 3, 2), f(6)],
    ),
    "conv2d last": (
        last(lambda x, w, b: F.conv2d(x, w, b, 2, 1), 2),
        [f(2, 7, 6, 4), f(6, 4, 3, 3), f(6)],
    ),
    "conv2d unbatched last": (last(lambda x, w: F.conv2d(x, w), 2), [f(7, 6, 4), f(6, 4, 3, 3)]),
    "conv3d": (lambda x, w, b: F.conv3d(x, w, b, 1, (0, 1, 1)), [X3, f(3, 2, 2, 3, 2), f(3)]),
    "conv_transpose1d": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1),
        [X1, f(4, 3, 3), f(3)],
    ),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, (1, 0), 1, 2, (1, 2)),
        [X2, f(4, 3, 3, 2), f(6)],
    ),
    "conv_transpose2d last": (last(F.conv_transpose2d, 2), [f(1, 3, 3, 4), f(4, 3, 3, 2)]),
    "conv_transpose3d": (lambda x, w: F.conv_transpose3d(x, w, None, 2), [X3, f(2, 3, 2, 2, 2)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), [X1]),
    "max_pool2d": (lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1), (1, 2), True), [X2]),
    "max_pool2d last": (last(lambda x: F.max_pool2d(x, 2), 2), [f(2, 7, 6, 4)]),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, 2), [X3]),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), [X1]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 1), True, False), [X2]),
    "avg_pool2d last": (last(lambda x: F.avg_pool2d(x, 2, 2, 1), 2), [f(2, 7, 6, 4)]),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), [X3]),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 4), [X1]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), [X2]),
    "adaptive_avg_pool2d last": (
        last(lambda x: F.adaptive_avg_pool2d(x, (1, 1)), 2),
        [f(2, 7, 6, 4)],
    ),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, (2, 2, 3)), [X3]),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 4), [X1]),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (3, 4)), [X2]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (7, 6), w, b, 1e-3), [X2, f(7, 6), f(7, 6)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (6,), w), [X2, f(6)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [X2, f(4), f(4)]),
    "group_norm last": (last(lambda x: F.group_norm(x, 2), 2), [f(2, 7, 6, 4)]),
    "batch_norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        [X2, const(4), const(4, low=0.5, high=2), f(4), f(4)],
    ),
    "batch_norm training": (
        batch_norm,
        [X2, const(4), const(4, low=0.5, high=2), f(4), f(4)],
    ),
    "batch_norm last": (
        last(lambda x: F.batch_norm(x, None, None, training=True), 2),
        [f(2, 7, 6, 4)],
    ),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [X2, f(4), f(4)]),
    "normalize": (F.normalize, [X1]),
    "normalize p": (lambda x: F.normalize(x, 3.0, -1, 0.1), [X1]),
    "linear": (F.linear, [f(2, 3, 5), f(4, 5), f(4)]),
    "attention": (F.scaled_dot_product_attention, [f(2, 2, 3, 4), f(2, 2, 4, 4), f(2, 2, 4, 5)]),
    "attention mask": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        [f(2, 2, 3, 4), f(2, 2, 4, 4), f(2, 2, 4, 5), MASK],
    ),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        [f(2, 4, 3, 4), f(2, 2, 3, 4), f(2, 2, 3, 4)],
    ),
    "embedding": (lambda w, i: F.embedding(i, w, padding_idx=-4), [f(4, 5), LABELS]),
    "one_hot": (lambda x, i: F.one_hot(i, 5) * x, [f(3, 5), LABELS]),
    "dropout": (lambda x, u: dropout(x, u, 0.3), [X1, const(2, 4, 9, low=0, high=1)]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), [X2]),
    "pad reflect": (lambda x: F.pad(x, (1, 2, 2, 0), mode="reflect"), [X2]),
    "pad circular": (lambda x: F.pad(x, (1, 2), mode="circular"), [X1]),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=2), [X2]),
    "interpolate exact": (lambda x: F.interpolate(x, (5, 9), mode="nearest-exact"), [X2]),
    "interpolate linear": (lambda x: F.interpolate(x, 5, mode="linear", align_corners=True), [X1]),
    "interpolate bilinear": (
        lambda x: F.interpolate(x, scale_factor=(1.5, 2.0), mode="bilinear"),
        [X2],
    ),
    "interpolate bicubic": (lambda x: F.interpolate(x, (9, 8), mode="bicubic"), [X2]),
    "interpolate trilinear": (lambda x: F.interpolate(x, (5, 3, 6), mode="trilinear"), [X3]),
    "interpolate area": (lambda x: F.interpolate(x, (3, 4), mode="area"), [X2]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [X2]),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), [f(1, 2, 4, 6)]),
    "unfold": (lambda x: F.unfold(x, (3, 2), 1, (1, 0), (2, 1)), [X2]),
    "fold": (lambda x: F.fold(x, (4, 5), (3, 2), padding=(1, 0), stride=(2, 1)), [f(2, 12, 8)]),
    "pairwise_distance": (
        lambda x, y: F.pairwise_distance(x, y, 3.0, keepdim=True),
        [f(3, 4), f(3, 4)],
    ),
    "rnn_tanh": (recurrent(torch.nn.RNN, 1), RNN),
    "rnn_relu": (recurrent(torch.nn.RNN, 1, nonlinearity="relu"), RNN),
    "gru": (recurrent(torch.nn.GRU, 2, bidirectional=True, batch_first=True), GRU),
    "lstm": (recurrent(torch.nn.LSTM, 2, bias=False), LSTM),
    "cosine_similarity": (F.cosine_similarity, [X1, f(2, 4, 9)]),
    "mse_loss": (F.mse_loss, [X1, f(2, 4, 9)]),
    "mse_loss none": (lambda x, t: F.mse_loss(x, t, reduction="none"), [X1, f(2, 4, 9)]),
    "l1_loss sum": (lambda x, t: F.l1_loss(x, t, reduction="sum"), [X1, f(2, 4, 9)]),
    "smooth_l1_loss": (lambda x, t: F.smooth_l1_loss(x, t, beta=0.6), [X1, f(2, 4, 9)]),
    "huber_loss": (lambda x, t: F.huber_loss(x, t, delta=0.6), [X1, f(2, 4, 9)]),
    "soft_margin_loss": (F.soft_margin_loss, [X1, const(2, 4, 9)]),
    "cross_entropy": (F.cross_entropy, [f(3, 4), LABELS]),
    "cross_entropy options": (
        lambda x, w, t: F.cross_entropy(x, t, w, ignore_index=2, label_smoothing=0.2),
        [f(3, 4), const(4, low=0.5, high=2), LABELS],
    ),
    "cross_entropy probabilities": (F.cross_entropy, [f(3, 4), f(3, 4)]),
    "cross_entropy none": (lambda x, t: F.cross_entropy(x, t, reduction="none"), [f(3, 4), LABELS]),
    "nll_loss": (lambda x, w, t: F.nll_loss(x, t, w), [f(3, 4), const(4, low=0.5, high=2), LABELS]),
    "binary_cross_entropy": (
        F.binary_cross_entropy,
        [Floats(3, 4, low=0.1, high=0.9), const(3, 4, low=0, high=1)],
    ),
    "binary_cross_entropy_with_logits": (
        lambda x, t, w, p: F.binary_cross_entropy_with_logits(
            x, t, w, pos_weight=p, reduction="sum"
        ),
        [f(3, 4), const(3, 4, low=0, high=1), const(4), const(4, low=0.5, high=2)],
    ),
    "kl_div": (
        lambda x, t: F.kl_div(x, t, reduction="batchmean"),
        [f(3, 4), const(3, 4, low=0.1, high=1)],
    ),
    "kl_div log": (
        lambda x, t: F.kl_div(x, t, reduction="sum", log_target=True),
        [f(3, 4), f(3, 4)],
    ),
    "poisson_nll_loss": (
        lambda x, t: F.poisson_nll_loss(x, t) + F.poisson_nll_loss(x * x, t, log_input=False),
        [f(3, 4), const(3, 4, low=0, high=5)],
    ),
    "gaussian_nll_loss": (
        F.gaussian_nll_loss,
        [f(3, 4), f(3, 4), Floats(3, 4, low=0.1, high=2)],
    ),
    "margin_ranking_loss": (
        lambda x, y, t: F.margin_ranking_loss(x, y, t, 0.2),
        [f(3), f(3), Given([1.0, -1.0, 1.0])],
    ),
    "cosine_embedding_loss": (
        lambda x, y, t: F.cosine_embedding_loss(x, y, t, 0.2),
        [f(3, 4), f(3, 4), Given([1, -1, 1])],
    ),
    "hinge_embedding_loss": (F.hinge_embedding_loss, [f(3), Given([1, -1, 1])]),
    "triplet_margin_loss": (
        lambda a, p, n: F.triplet_margin_loss(a, p, n, swap=True),
        [f(3, 4), f(3, 4), f(3, 4)],
    ),
    "multi_head_attention": (attention, ATTENTION),
    "multi_head_attention causal": (lambda *p: attention(*p, causal=True), ATTENTION),
    "encoder layer": (lambda *p: encoder(*p, norm_first=False), ENCODER),
    "encoder layer norm first": (lambda *p: encoder(*p, norm_first=True), ENCODER),
    "resnet_module": (resnet, RESNET),
    # The chain rule through what composit was first tested with.
    "chain matmul": (torch.matmul, [f(5, 25, 15), f(15, 30)]),
    "chain add": (torch.add, [f(5, 25, 15), f(5, 25, 15)]),
    "chain sub broadcast": (torch.sub, [f(5, 25, 15), f(5, 1, 1)]),
    "chain mul": (torch.mul, [f(5, 25, 15), f(5, 25, 15)]),
    "chain mul broadcast": (torch.mul, [f(5, 1, 1), f(5, 25, 15)]),
    "chain div": (torch.div, [f(5, 25, 15), Floats(5, 25, 15, low=0.5, high=2)]),
    "chain div broadcast": (torch.div, [f(5, 25, 15), Floats(5, 1, 1, low=0.5, high=2)]),
    "chain matmul add subtract": (
        lambda x, w, b, c: x @ w + b - c,
        [f(5, 25, 15), f(15, 30), f(30), f(5, 25, 30)],
    ),
    "chain several consumers": (
        lambda x, w, b: ((h := x @ w) + b - h * h).sum(),
        [f(5, 25, 15), f(15, 30), f(30)],
    ),
    "chain transpose": (lambda x: x.permute(0, 3, 1, 2), [f(5, 25, 15, 3)]),
    "chain transpose 5": (lambda x: x.permute(1, 3, 0, 4, 2), [f(19, 1, 15, 3, 8)]),
    "chain reshape": (lambda x: x.reshape(125, 45), [f(5, 25, 15, 3)]),
    "chain reshape 5": (lambda x: x.reshape(6, 90, 12), [f(18, 1, 15, 3, 8)]),
    "chain split": (lambda x: x.split(5, 2)[1], [f(5, 25, 15)]),
    "chain split add": (lambda x: (s := x.split(5, 2))[0] + s[2], [f(5, 25, 15)]),
    "chain exp": (torch.exp, [f(5, 25, 15, 3)]),
    "chain sqrt": (torch.sqrt, [Floats(5, 25, 15, 3, low=0.1, high=2)]),
    "chain square": (torch.square, [f(5, 25, 15, 3)]),
    "chain gelu": (F.gelu, [f(5, 25, 15, 3)]),
    "chain max": (lambda x: x.amax(2), [f(5, 25, 15, 3)]),
    "chain mean": (lambda x: x.mean(2), [f(5, 25, 15, 3)]),
    "chain mean all": (lambda x: x.mean(), [f(16, 8)]),
    # Their values at NaN and infinity.
    "special exp": (torch.exp, [Special()]),
    "special sqrt": (torch.sqrt, [Special()]),
    "special relu": (F.relu, [Special()]),
    "special sigmoid": (torch.sigmoid, [Special()]),
    "special square": (lambda x: x * x, [Special()]),
    "special quotient": (lambda x, y: x / y, [Special(), Special()]),
    "special max": (lambda x: x.amax(), [Special()]),
    "special maximum": (lambda x: torch.maximum(x, x.flip(0)), [Special()]),
    "special softmax": (lambda x: F.softmax(x[1:], 0), [Special()]),
    "special where": (lambda x: torch.where(x > 0, x, x * x), [Special()]),
    "special max_pool1d": (lambda x: F.max_pool1d(x.reshape(1, 6), 2), [Special()]),
    "special cross_entropy": (
        lambda x: F.cross_entropy(x.reshape(2, 3), torch.tensor([1, 2])),
        [Special()],
    ),
}

# ---- optimizers ---------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=1e-1)),
    "sgd weight decay": (torch.optim.SGD, dict(lr=1e-1, weight_decay=0.1)),
    "sgd momentum": (torch.optim.SGD, dict(lr=1e-1, momentum=0.9)),
    "sgd dampening": (torch.optim.SGD, dict(lr=1e-1, momentum=0.9, dampening=0.3)),
    "sgd nesterov": (
        torch.optim.SGD,
        dict(lr=1e-1, momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
    "adam": (torch.optim.Adam, dict(lr=1e-2)),
    "adam options": (
        torch.optim.Adam,
        dict(lr=1e-2, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.1),
    ),
    "adam amsgrad": (torch.optim.Adam, dict(lr=1e-1, betas=(0.5, 0.6), amsgrad=True)),
    "adamw": (torch.optim.AdamW, dict(lr=1e-2)),
    "adamw options": (torch.optim.AdamW, dict(lr=1e-1, weight_decay=0.3, amsgrad=True)),
}


def train(optimizer, options, x, y, w, b):
    """Ten steps of a small network; the parameters after each, and the loss before it."""
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    algorithm = optimizer([w, b], **options)
    for step in range(10):
        algorithm.zero_grad()
        loss = F.mse_loss(torch.tanh(F.linear(x, w, b)), y)
        loss.backward()
        algorithm.step()
        yield f"step.{step}.loss", loss
        yield f"step.{step}.w", w
        yield f"step.{step}.b", b


# ---- output -------------------------------------------------------------------------------------


def run_function(function, inputs):
    results = function(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    for i, x in enumerate(inputs):
        yield f"input.{i}", x
    differentiable = [r for r in results if r.requires_grad]
    cotangents = [torch.randn(r.shape, dtype=torch.float64).to(r.dtype) for r in differentiable]
    for i, result in enumerate(results):
        yield f"result.{i}", result
    for i, cotangent in enumerate(cotangents):
        yield f"cotangent.{i}", cotangent
    wanted = [i for i, x in enumerate(inputs) if x.requires_grad]
    gradients = torch.autograd.grad(differentiable, [inputs[i] for i in wanted], cotangents)
    for i, gradient in zip(wanted, gradients):
        yield f"gradient.{i}", gradient


def main(path):
    torch.set_num_threads(1)
    tensors = {}
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        for case, (function, specs) in FUNCTIONS.items():
            torch.manual_seed(len(case))
            inputs = [spec.make(dtype) for spec in specs]
            inputs = [x.to(dtype) if x.dtype == torch.float32 else x for x in inputs]
            for part, tensor in run_function(function, inputs):
                tensors[f"{case}|{name}|{part}"] = tensor.detach().clone().contiguous()
        for case, (optimizer, options) in OPTIMIZERS.items():
            torch.manual_seed(3)
            sizes = ((5, 3), (5, 4), (4, 3), (4,))
            data = [torch.randn(size, dtype=torch.float64).to(dtype) for size in sizes]
            for part, tensor in zip(("x", "y", "w", "b"), data):
                tensors[f"optimizer {case}|{name}|{part}"] = tensor
            for part, tensor in train(optimizer, options, *data):
                tensors[f"optimizer {case}|{name}|{part}"] = tensor.detach().clone()
    save_file(tensors, path)


main(sys.argv[1])
