"""Models that PyTorch's own exporter writes, at several versions, with sizes given and left open: what is
read gives what torch gives. The exporter needs the package onnx, which lives in the interchange
environment."""

import os
import pathlib
import sys
import tempfile
import unittest
import warnings

PYTHON = pathlib.Path(os.environ["FLASHLIGHT_INTERCHANGE_PYTHON"])

import numpy as np
import torch
import transformers

import composit
import flashlight

SKIPPED = 77
CLOSE = 1e-5  # of the largest element: sums are made in other orders
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


class Call(torch.nn.Module):
    """Some results of a model."""

    def __init__(self, model, call):
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *arguments):
        return self.call(self.model, *arguments)


class Pieces(torch.nn.Module):
    """Operators of torch that become many of ONNX."""

    def forward(self, x, y):
        functional = torch.nn.functional
        written = x.clone()
        written[:, 0] = y[:, 1]
        written[:, :, 1:3] = 0
        values, places = x.flatten(1).topk(3)
        return (functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),
                functional.interpolate(x, size=(7, 5), mode="bicubic"),
                functional.pad(x, (1, 2, 3, 1), mode="reflect"), x[:, :, 1::2, -3:],
                torch.einsum("bchw,bdhw->bcd", x, y),
                functional.grid_sample(x, torch.tanh(y.permute(0, 2, 3, 1)[..., :2]), align_corners=False),
                torch.cat([x.amax((2, 3)), x.std((2, 3)), x.norm(dim=(2, 3))], 1),
                torch.roll(x, 1, 2) + torch.tril(x), values, places, written,
                torch.where(x > 0, x, y).cumsum(2), functional.adaptive_avg_pool2d(x, (2, 2)),
                x.scatter_add(1, torch.zeros_like(x, dtype=torch.long), y), functional.glu(x, 1),
                x.unfold(2, 2, 1))


def models():
    """By name: a model, arguments, the sizes of each that are left open, versions."""
    ids, mask = torch.randint(1, 90, (2, 7)), torch.ones(2, 7).long()
    picture = torch.randn(2, 3, 32, 32)
    tokens = {0: "batch", 1: "tokens"}
    batch = {0: "batch"}
    bert = transformers.BertModel(transformers.BertConfig(vocab_size=99, **SMALL))
    deberta = transformers.DebertaV2Model(transformers.DebertaV2Config(
        vocab_size=99, relative_attention=True, pos_att_type=["p2c", "c2p"], **SMALL))
    resnet = transformers.ResNetModel(transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]))
    swin = transformers.SwinModel(transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4))
    lstm = torch.nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)

    def first(model, x):
        return model(x)[0]

    return {
        "bert": (Call(bert, lambda m, i, a: m(i, attention_mask=a)[0]), [ids, mask], [tokens] * 2, (14, 17)),
        "deberta": (Call(deberta, first), [ids], [tokens], (14, 17)),
        "resnet": (Call(resnet, first), [picture], [{0: "batch", 2: "height", 3: "width"}], (11, 17)),
        "swin": (Call(swin, first), [picture], [batch], (11, 17)),
        "lstm": (Call(lstm, first), [torch.randn(2, 6, 4)], [{0: "batch", 1: "steps"}], (9, 11, 17)),
        "pieces": (Pieces(), [torch.randn(2, 4, 6, 6), torch.randn(2, 4, 6, 6)], [batch] * 2, (17,)),
    }


def at(size_range, place):
    """A number in a range, by its place from 0 to 1."""
    low, high, step = (*size_range, 1)[:3]
    return low + int(place * ((high - low) // step)) * step


def resized(tensor, sizes):
    """Axes cut, or repeated; as no example that was read has them."""
    for axis, size in sizes.items():
        tensor = tensor.index_select(axis, torch.arange(size) * 5 % tensor.shape[axis])
    return tensor


class TorchExporterTest(unittest.TestCase):

    def setUp(self):
        torch.manual_seed(0)
        warnings.simplefilter("ignore")  # the exporter says that there is a newer one
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.onnx"

    def export(self, model, arguments, open_sizes, opset):
        names = [f"x{i}" for i in range(len(arguments))]
        torch.onnx.export(model.eval(), tuple(arguments), self.path, dynamo=False, opset_version=opset,
                          input_names=names, dynamic_axes=dict(zip(names, open_sizes)))

    @torch.no_grad()
    def agrees(self, model, arguments, open_sizes, opset):
        self.export(model, arguments, open_sizes, opset)
        sizes = {name: argument.shape[axis] for argument, axes in zip(arguments, open_sizes)
                 for axis, name in axes.items()}
        graph = composit.load_onnx(self.path, sizes=sizes)
        given = dict(zip(graph.inputs, (argument.numpy() for argument in arguments)))
        received = composit.evaluate(*graph.outputs, inputs=given)
        expected = model(*arguments)
        received = received if isinstance(received, tuple) else (received,)
        self.are_close(received, expected)

    def are_close(self, received, expected):
        expected = expected if isinstance(expected, tuple) else (expected,)
        for ours, tensor in zip(received, expected, strict=True):
            theirs = tensor.numpy()
            self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=CLOSE * float(np.abs(theirs).max()))

    @torch.no_grad()
    def test_families(self):
        """Sizes that are left open stay so, at numbers that were not read."""
        ranges = {"batch": (2, 6), "tokens": (4, 40), "steps": (3, 20), "height": (32, 96, 8), "width": (32, 96, 8)}
        for name, (model, arguments, open_sizes, versions) in models().items():
            with self.subTest(name):
                self.export(model, arguments, open_sizes, versions[-1])
                sizes = {size: ranges[size] for axes in open_sizes for size in axes.values()}
                family = flashlight.load_onnx(self.path, sizes=sizes)
                for place in (0, 0.3, 0.7, 1):
                    others = [resized(argument, {axis: at(ranges[size], place) for axis, size in axes.items()})
                              for argument, axes in zip(arguments, open_sizes)]
                    received = family(*others)
                    self.are_close([one.numpy() for one in received.values()], model(*others))

    def test_models(self):
        for name, (model, arguments, names, versions) in models().items():
            for opset in versions:
                for open_sizes in (names, [{} for _ in names]):
                    with self.subTest(name, opset=opset, open_sizes=open_sizes):
                        self.agrees(model, arguments, open_sizes, opset)


if __name__ == "__main__":
    if not PYTHON.exists():
        print("skipped: ./dev interchange makes what this needs")
        sys.exit(SKIPPED)
    sys.path += map(str, PYTHON.parents[1].glob("lib/python*/site-packages"))  # behind this one's own
    unittest.main()
