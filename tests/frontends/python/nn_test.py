"""composit.nn against torch: functions, derivatives, optimizers, training."""

import functools
import unittest

import numpy as np
import torch

import composit
import composit.numpy as cnp
from array_agreement import difference
from composit import nn
from composit.nn.optimize import adam_optimizer, adamw_optimizer, optimize, sgd_optimizer

F = torch.nn.functional


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def case(name, *arrays, **named):
    return name, arrays, named


X, IMAGE, WEIGHT = data(3, 4), data(2, 4, 9, 8), data(6, 4, 3, 3, seed=1)
LABELS = np.array([1, 0, 3])
SIGNS = np.sign(data(3, 4, seed=5))
ROWS, COLUMN = data(3, 4, seed=2), data(3, seed=3)
CASES = [
    *(case(name, X) for name in """relu sigmoid tanh silu mish selu relu6 hardsigmoid hardswish tanhshrink
        softsign logsigmoid leaky_relu elu celu hardshrink softshrink gelu hardtanh softplus glu""".split()),
    case("gelu", X, approximate="tanh"), case("leaky_relu", X, negative_slope=0.2), case("elu", X, alpha=2.0),
    case("softmax", X, dim=1), case("softmin", X, dim=0), case("log_softmax", X, dim=-1),
    case("threshold", X, threshold=0.1, value=20.0), case("prelu", X, data(4)),
    case("linear", X, data(5, 4)), case("linear", X, data(5, 4), data(5)),
    case("scaled_dot_product_attention", data(2, 3, 5, 4), data(2, 3, 6, 4, seed=1), data(2, 3, 6, 7, seed=2)),
    case("scaled_dot_product_attention", data(2, 3, 5, 4), data(2, 3, 5, 4, seed=1), data(2, 3, 5, 7), is_causal=True),
    case("embedding", LABELS, data(4, 5)), case("one_hot", LABELS, num_classes=4),
    case("pad", IMAGE, pad=(1, 2, 0, 3)), case("pad", IMAGE, pad=(1, 2, 0, 1), mode="reflect"),
    case("interpolate", IMAGE, scale_factor=2),
    case("interpolate", IMAGE, size=(5, 7), mode="bilinear", align_corners=False),
    case("pixel_shuffle", IMAGE, upscale_factor=2), case("pixel_unshuffle", data(2, 4, 8, 6), downscale_factor=2),
    case("pairwise_distance", X, ROWS), case("cosine_similarity", X, ROWS, dim=1),
    case("unfold", IMAGE, kernel_size=(3, 2), padding=1, stride=2),
    case("layer_norm", X, normalized_shape=(4,)), case("rms_norm", X, normalized_shape=(4,)),
    case("group_norm", IMAGE, num_groups=2, weight=data(4), bias=data(4, seed=1)),
    case("batch_norm", IMAGE, running_mean=data(4), running_var=np.abs(data(4)), weight=data(4), bias=data(4)),
    case("instance_norm", IMAGE), case("normalize", X), case("normalize", X, p=1.0, dim=0),
    case("conv1d", data(2, 4, 9), data(6, 4, 3)), case("conv2d", IMAGE, WEIGHT, data(6), stride=2, padding=(1, 0)),
    case("conv2d", IMAGE, data(8, 2, 3, 3), groups=2, dilation=2),
    case("conv3d", data(1, 2, 4, 4, 4), data(3, 2, 2, 2, 2)),
    case("conv_transpose2d", IMAGE, data(4, 3, 3, 3), stride=2, output_padding=1),
    case("max_pool2d", IMAGE, kernel_size=3, stride=2, padding=1), case("max_pool1d", data(2, 4, 9), kernel_size=2),
    case("avg_pool2d", IMAGE, kernel_size=(3, 2)),
    case("avg_pool2d", IMAGE, kernel_size=3, padding=1, count_include_pad=False),
    case("adaptive_avg_pool2d", IMAGE, output_size=(4, 4)), case("adaptive_max_pool2d", IMAGE, output_size=(3, 5)),
    *(case(name, X, ROWS, reduction=reduction) for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
      for reduction in ("mean", "sum", "none")),
    case("soft_margin_loss", X, SIGNS), case("hinge_embedding_loss", X, SIGNS),
    case("cross_entropy", X, LABELS), case("cross_entropy", X, LABELS, label_smoothing=0.1, reduction="sum"),
    case("cross_entropy", X, LABELS, weight=np.abs(data(4))), case("nll_loss", X, LABELS, ignore_index=3),
    case("binary_cross_entropy", 1 / (1 + np.exp(-X)), (SIGNS + 1) / 2),
    case("binary_cross_entropy_with_logits", X, (SIGNS + 1) / 2, pos_weight=np.abs(data(4))),
    case("kl_div", X, np.exp(ROWS), reduction="batchmean"), case("poisson_nll_loss", X, np.abs(ROWS)),
    case("gaussian_nll_loss", X, ROWS, np.abs(data(3, 4, seed=9))),
    case("margin_ranking_loss", COLUMN, data(3, seed=8), np.sign(data(3, seed=7)), margin=0.2),
    case("cosine_embedding_loss", X, ROWS, np.array([1.0, -1.0, 1.0])),
    case("triplet_margin_loss", X, ROWS, data(3, 4, seed=4)),
]  # fmt: skip



def by_torch(name, arrays, named):
    def tensor(value):
        return torch.from_numpy(np.asarray(value)) if isinstance(value, np.ndarray) else value

    return getattr(F, name)(*map(tensor, arrays), **{key: tensor(value) for key, value in named.items()})


class Functions(unittest.TestCase):
    def test_values(self):
        for name, arrays, named in CASES:
            with self.subTest(name, **{k: v for k, v in named.items() if not isinstance(v, np.ndarray)}):
                ours = composit.evaluate(getattr(nn, name)(*arrays, **named))
                self.assertEqual(difference(ours, by_torch(name, arrays, named).numpy(), times=10), "")

    def test_derivatives(self):
        """Of the sum of squares of the result, by the first argument."""
        for name, arrays, named in CASES:
            if arrays[0].dtype.kind != "f" or name == "hardsigmoid":
                continue  # torch's slope of hardsigmoid is a float32 sixth, also of float64
            with self.subTest(name):
                x = cnp.asarray(arrays[0])
                (ours,) = nn.grad(cnp.sum(cnp.square(getattr(nn, name)(x, *arrays[1:], **named))), [x])
                leaf = torch.from_numpy(arrays[0].copy()).requires_grad_()
                rest = [torch.from_numpy(a) for a in arrays[1:]]
                keyed = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in named.items()}
                getattr(F, name)(leaf, *rest, **keyed).square().sum().backward()
                self.assertEqual(difference(composit.evaluate(ours), leaf.grad.numpy(), times=100), "")

    def test_recurrent(self):
        module = torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True).double()
        x, h, c = data(7, 3, 4), data(4, 3, 5), data(4, 3, 5, seed=1)
        weights = [[w.detach().numpy() for w in group] for group in module.all_weights]
        expected, (eh, ec) = module(torch.from_numpy(x), (torch.from_numpy(h), torch.from_numpy(c)))
        results = composit.evaluate(*nn.lstm(x, h, c, weights, bidirectional=True))
        for ours, theirs in zip(results, (expected, eh, ec)):
            self.assertEqual(difference(ours, theirs.detach().numpy(), times=10), "")

    def test_batch_norm_in_training_gives_new_statistics(self):
        mean, var = data(4), np.abs(data(4, seed=1))
        m, v = torch.from_numpy(mean.copy()), torch.from_numpy(var.copy())
        expected = F.batch_norm(torch.from_numpy(IMAGE), m, v, training=True)
        results = composit.evaluate(*nn.batch_norm(IMAGE, mean, var, training=True))
        for ours, theirs in zip(results, (expected, m, v)):
            self.assertEqual(difference(ours, theirs.numpy(), times=10), "")

    def test_errors(self):
        with self.assertRaisesRegex(composit.Error, "expected the reduction 'mean'"):
            nn.mse_loss(X, X, reduction="average")
        with self.assertRaisesRegex(composit.Error, "floating point"):
            x = cnp.asarray([1, 2])
            nn.chain_rule({x: x}, [x])


class Layers(unittest.TestCase):
    @staticmethod
    def pair(module):
        return tuple(None if p is None else p.detach().numpy() for p in (module.weight, module.bias))

    def check(self, ours, theirs):
        self.assertEqual(difference(composit.evaluate(ours), theirs.detach().numpy(), times=10), "")

    @staticmethod
    def attention_of(module):
        """Weights of query, key and value lie in one matrix."""
        weights, biases = (np.split(parameter.detach().numpy(), 3)
                           for parameter in (module.in_proj_weight, module.in_proj_bias))
        return [*zip(weights, biases), Layers.pair(module.out_proj)]

    def test_attention(self):
        module = torch.nn.MultiheadAttention(12, 3, batch_first=True).double()
        torch.nn.init.normal_(module.in_proj_bias)
        x, y = data(2, 5, 12), data(2, 7, 12, seed=1)
        theirs, _ = module(*map(torch.from_numpy, (x, y, y)))
        self.check(nn.multi_head_attention(x, y, y, self.attention_of(module), head_size=4), theirs)

    def test_encoder(self):
        for norm_first in (False, True):
            module = torch.nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, norm_first=norm_first, dropout=0.0,
                                                      activation="gelu").double()
            x = data(2, 5, 12)
            ours = nn.transformer_encoder_layer(
                x, self.attention_of(module.self_attn), (self.pair(module.linear1), self.pair(module.linear2)),
                (self.pair(module.norm1), self.pair(module.norm2)), head_size=4, activation=nn.gelu,
                norm_first=norm_first)
            self.check(ours, module(torch.from_numpy(x)))

    def test_resnet(self):
        def convolution(sizes, seed):
            channels = sizes[0]
            return (data(*sizes, seed=seed), (data(channels, seed=seed), data(channels, seed=seed + 1)),
                    data(channels, seed=seed + 2), np.abs(data(channels, seed=seed + 3)))

        def by_torch(x, parts, stride, padding):
            weight, (gamma, beta), mean, var = torch.utils._pytree.tree_map(torch.from_numpy, parts)
            return F.batch_norm(F.conv2d(x, weight, stride=stride, padding=padding), mean, var, gamma, beta)

        first, second, down = convolution((6, 4, 3, 3), 1), convolution((6, 6, 3, 3), 5), convolution((6, 4, 1, 1), 9)
        x = torch.from_numpy(IMAGE)
        inner = by_torch(F.relu(by_torch(x, first, 2, 1)), second, 1, 1)
        expected = F.relu(inner + by_torch(x, down, 2, 0))
        self.check(nn.resnet_block(IMAGE, ([first, second], down), stride=2), expected)
        self.check(nn.resnet_module(IMAGE, [([first, second], down)], [2]), expected)

    def test_parameters(self):
        init = nn.Initializer(1, dtype="float64")
        weight, bias = init.kaiming_uniform("fc.weight", (50, 40)), init.full("fc.bias", 5, 0.5)
        self.assertEqual([p.name for p in init.parameters], ["fc.weight", "fc.bias"])
        values = composit.evaluate(weight)
        self.assertLess(np.abs(values).max(), np.sqrt(6 / 40))
        self.assertAlmostEqual(values.var(), 2 / 40, delta=0.005)
        np.testing.assert_array_equal(composit.evaluate(bias), np.full(5, 0.5))


class Derivatives(unittest.TestCase):
    def test_a_loss_may_map_to_itself(self):
        x = cnp.asarray([3.0])
        loss = cnp.sum(x * x)
        (ours,) = nn.chain_rule({loss: loss}, [x])
        np.testing.assert_array_equal(composit.evaluate(ours), [9 * 6])  # its value times 2 x

    def test_forward_mode_and_second_derivatives(self):
        x = cnp.asarray([1.0, 2.0])
        loss = cnp.sum(x**3)
        (tangent,) = nn.jvp([loss], [x], [np.array([1.0, 10.0])])
        (product,) = nn.hessian_vector_product(loss, [x], [np.array([1.0, 10.0])])
        self.assertAlmostEqual(float(composit.evaluate(tangent)), 3 + 120)
        np.testing.assert_allclose(composit.evaluate(product), [6, 120])


class Optimizers(unittest.TestCase):
    def check(self, ours, theirs, evaluate=composit.evaluate):
        """Five steps on a least squares problem, beside torch.optim."""
        x, y = data(8, 3), data(8, 2, seed=1)
        start = [data(3, 2), data(2)]
        weights = [cnp.asarray(value, name=f"w{i}") for i, value in enumerate(start)]
        leaves = [torch.from_numpy(value.copy()).requires_grad_() for value in start]
        optimizer = theirs(leaves)
        for _ in range(5):
            loss = nn.mse_loss(x @ weights[0] + weights[1], y)
            weights = optimize(weights, nn.grad(loss, weights), ours, evaluate)
            optimizer.zero_grad()
            F.mse_loss(torch.from_numpy(x) @ leaves[0] + leaves[1], torch.from_numpy(y)).backward()
            optimizer.step()
        for i, (weight, leaf) in enumerate(zip(weights, leaves)):
            self.assertEqual(weight.name, f"w{i}")
            self.assertEqual(difference(composit.evaluate(weight), leaf.detach().numpy(), times=10), "")

    def test_sgd(self):
        self.check(sgd_optimizer(0.1), functools.partial(torch.optim.SGD, lr=0.1))
        self.check(sgd_optimizer(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
                   functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01))

    def test_adam(self):
        self.check(adam_optimizer(0.1), functools.partial(torch.optim.Adam, lr=0.1))
        self.check(adam_optimizer(0.1, amsgrad=True, betas=(0.8, 0.99)),
                   functools.partial(torch.optim.Adam, lr=0.1, amsgrad=True, betas=(0.8, 0.99)))
        self.check(adamw_optimizer(0.1), functools.partial(torch.optim.AdamW, lr=0.1))

    def test_other_backends(self):
        for backend in ("cpp", "mosaic"):
            self.check(adam_optimizer(0.1), functools.partial(torch.optim.Adam, lr=0.1),
                       functools.partial(composit.evaluate, backend=backend))

    def test_errors(self):
        x = cnp.ones((2,))
        with self.assertRaisesRegex(composit.Error, "a gradient for each of 1 inputs"):
            optimize([x], [], sgd_optimizer())
        with self.assertRaisesRegex(composit.Error, "learning_rate"):
            sgd_optimizer(-1.0)


if __name__ == "__main__":
    unittest.main()
