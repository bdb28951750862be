"""Programs that torch.export saves, read as captures: they run with the bits of torch and write what torch writes.
tests/conformance/models.py differentiates and compiles what is read of whole models."""

import copy
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2] / "conformance")]

import no_looks  # before flashlight
import torch

from torch._higher_order_ops import map as map_over, scan, while_loop

import architectures
import composit
import flashlight
from agreement import leaves, same_bits
from from_export import Results, exported

# Of transformers: encoders, decoders, from text to text, of images.
# Others run nightly; `./dev models` reads all that there are.
TRANSFORMERS = """
bart convnext gpt2 mamba swin wav2vec2
""".split()
if "FLASHLIGHT_FUZZ_PROGRAMS" in os.environ:
    TRANSFORMERS += """
    albert bert bloom deberta dinov2 distilbert electra gpt_neox levit llama marian mobilebert mobilenet_v2
    modernbert opt phi qwen2 regnet resnet roberta segformer siglip_vision_model squeezebert t5 vit
    """.split()


class ResNet(torch.nn.Module):
    """Convolutions with running values, which training writes, and a dropout, which draws."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8))
        self.block = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1, bias=False),
                                         torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True))
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.nn.functional.max_pool2d(x + self.block(x), 2)
        return self.head(torch.nn.functional.dropout(x.mean((2, 3)), 0.25, self.training))


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")

    def forward(self, x, *, mask):
        return {"y": self.layer(x, src_mask=mask), "parts": (x.flip(0), [mask.sum(), None, 3])}


class Saved(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def loaded(self, program):
        """The capture of what torch.export.save writes of a program."""
        file = pathlib.Path(self.folder.name) / "program.pt2"
        torch.export.save(program, file)
        return flashlight.load_pt2(file)

    def exported(self, model, *arguments, functional=True, **keywords):
        with torch.no_grad():
            program = torch.export.export(model, arguments, keywords, strict=False)
        return program.run_decompositions({}) if functional else program

    def assert_same(self, program, captured, arguments, keywords=None, calls=1):
        """Results, and what is written to arguments and state, call for call."""
        module = program.module()
        keywords = keywords or {}
        ours = copy.deepcopy((arguments, keywords))
        with torch.no_grad():
            for call in range(calls):
                torch.manual_seed(call)
                expected = module(*arguments, **keywords)
                torch.manual_seed(call)
                received = captured(*ours[0], **ours[1])
                self.assertTrue(same_bits(received, expected))
                self.assertTrue(same_bits(ours, (arguments, keywords)))
        state = module.state_dict()
        for name, value in captured.state().items():
            if name in state:
                self.assertTrue(same_bits(value, state[name]), name)


class Spectra(torch.nn.Module):
    def forward(self, x):
        f = torch.fft
        return (f.rfft(x), f.irfft(f.rfft(x, norm="ortho"), n=5), f.fft2(x).real, f.fftn(x, norm="forward").imag,
                f.irfft2(f.rfft2(x)), f.fftshift(x), f.ifft(x, dim=0).abs(), f.hfft(f.ihfft(x)))


class AttentionOverPixels(torch.nn.Module):
    """Of one image: the transposed tokens have strides that look as those of channels at the end, or do not."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.norm = torch.nn.GroupNorm(2, 8)
        self.out = torch.nn.Linear(8, 8)

    def forward(self, x):
        tokens = self.out(x.flatten(2).transpose(1, 2))
        return self.conv(self.norm(tokens.transpose(-1, -2).reshape(x.shape) + x).relu())


class ProgramTest(Saved):
    def test_fourier_transforms(self):
        captured = self.loaded(self.exported(Spectra(), torch.randn(6, 8)))
        x = torch.randn(6, 8)
        self.assert_same(self.exported(Spectra(), x), captured, (x,))
        with torch.no_grad():
            exact = leaves(Spectra()(x.double()))
            for backend in ("cpp", "mosaic"):
                for value, of in zip(leaves(captured.compile(backend, flags=["-O1"])(x)), exact):
                    torch.testing.assert_close(value.to(of.dtype), of, rtol=1e-5, atol=1e-5)

    def test_the_strides_of_one_image(self):
        """The file says other strides than the run has, and with them another kernel."""
        model = AttentionOverPixels()
        program = self.exported(model, torch.randn(1, 8, 16, 16))
        self.assert_same(program, self.loaded(program), (torch.randn(1, 8, 16, 16),))

    def test_modules_in_both_dialects_and_modes(self):
        for functional in (True, False):
            for training in (True, False):
                with self.subTest(functional=functional, training=training):
                    model = ResNet().train(training)
                    program = self.exported(model, torch.randn(4, 3, 8, 8), functional=functional)
                    captured = self.loaded(program)
                    self.assert_same(program, captured, (torch.randn(4, 3, 8, 8),), calls=3)

    def test_structure_of_arguments_and_results(self):
        mask = torch.zeros(6, 6)
        model = Attention().eval()
        program = self.exported(model, torch.randn(2, 6, 16), mask=mask)
        captured = self.loaded(program)
        x = torch.randn(2, 6, 16)
        self.assert_same(program, captured, (x,), {"mask": mask})
        with torch.no_grad():
            received = captured(x, mask=mask)
        self.assertEqual(list(received), ["y", "parts"])
        self.assertIsNone(received["parts"][1][1])
        self.assertEqual(received["parts"][1][2], 3)

    def test_the_example_and_the_names_come_along(self):
        x = torch.randn(4, 3, 8, 8)
        model = ResNet().eval()
        captured = self.loaded(self.exported(model, x))
        self.assertTrue(same_bits(captured.example_inputs, ((x,), {})))
        self.assertEqual(set(captured.state()), set(model.state_dict()))
        annotations = [node.annotations for node in captured.graph.nodes]
        self.assertIn("block.0", {a.get("scope") for a in annotations})
        self.assertTrue(any("pt2_read_test.py:" in a.get("source", "") for a in annotations))

    def test_tied_and_strided_weights(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
                self.two.weight = self.one.weight
                self.across = torch.nn.Parameter(torch.randn(4, 4).t())
                self.register_buffer("scale", torch.ones(4), persistent=False)

            def forward(self, x):
                self.scale.mul_(2)
                return self.two(self.one(x)) @ self.across * self.scale + torch.tensor([1., 2, 3, 4])

        for functional in (True, False):
            program = self.exported(Tied(), torch.randn(2, 4), functional=functional)
            captured = self.loaded(program)
            self.assertEqual(captured.state()["across"].stride(), (1, 4))
            self.assert_same(program, captured, (torch.randn(2, 4),), calls=3)

    def test_an_argument_that_is_called_as_a_weight(self):
        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.x = torch.nn.Parameter(torch.randn(3))

            def forward(self, x):
                return x * self.x

        program = self.exported(Named(), torch.randn(3))
        captured = self.loaded(program)
        self.assert_same(program, captured, (torch.randn(3),))
        self.assertEqual(list(captured.state()), ["x"])

    def test_arguments_that_are_written(self):
        class Writes(torch.nn.Module):
            def forward(self, x, parts):
                x.add_(parts["a"][0])
                parts["a"][0].relu_()
                return x * 2

        arguments = (torch.randn(3), {"a": [torch.randn(3)]})
        for functional in (True, False):
            program = self.exported(Writes(), *copy.deepcopy(arguments), functional=functional)
            self.assert_same(program, self.loaded(program), copy.deepcopy(arguments), calls=2)

    def test_branches(self):
        class Branch(torch.nn.Module):
            def forward(self, x, y):
                return torch.cond(x.sum() > 0, lambda a, b: (a + b, a.exp()),
                                  lambda a, b: (a - b, b.sin()), (x, y))

        program = self.exported(Branch(), torch.ones(3), torch.randn(3))
        captured = self.loaded(program)
        for sign in (1, -1):
            self.assert_same(program, captured, (sign * torch.ones(3), torch.randn(3)))

    def test_loops(self):
        class Loops(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 3)

            def forward(self, x):
                rows = torch.stack([x, x + 1, x * 2])
                carried, outputs = scan(lambda c, v: (self.layer(c) + v, c * v), torch.zeros(3), rows,
                                        dim=0, reverse=True)
                times, y = while_loop(lambda n, a: n * a.abs().sum() < 9,
                                      lambda n, a: (n + 1, self.layer(a) + 1), (torch.tensor(1), x))
                return carried, outputs, times, y, map_over(lambda v, y: v * y, rows, x)

        for functional in (True, False):
            program = self.exported(Loops(), torch.randn(3), functional=functional)
            captured = self.loaded(program)
            for scale in (1, 10):
                self.assert_same(program, captured, (scale * torch.randn(3),))

    def test_what_ran_without_gradients(self):
        class NoGrad(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w, self.v = (torch.nn.Parameter(torch.randn(3)) for _ in range(2))

            def forward(self, x):
                with torch.no_grad():
                    scale = self.v.exp()
                return (x * scale * self.w + self.v.detach()).sum()

        model, x = NoGrad(), torch.randn(3)
        captured = self.loaded(torch.export.export(model, (x,), strict=False))
        _, gradients = captured.grad(wrt=["w", "v"])(x)
        model(x).backward()
        self.assertTrue(torch.equal(gradients["w"], model.w.grad))
        self.assertEqual(gradients["v"].abs().sum().item(), 0)

    def test_files_of_our_own(self):
        model, x = ResNet(), torch.randn(4, 3, 8, 8)
        file = pathlib.Path(self.folder.name) / "own.pt2"
        flashlight.trace(model, x).export(file)
        captured = flashlight.load_pt2(file)
        program = torch.export.load(file)
        self.assert_same(program, captured, (torch.randn(4, 3, 8, 8),), calls=2)
        again = pathlib.Path(self.folder.name) / "again.pt2"
        flashlight.load_pt2(file).export(again)
        self.assert_same(torch.export.load(again), flashlight.load_pt2(file),
                         (torch.randn(4, 3, 8, 8),), calls=2)

    def test_composit_needs_no_torch(self):
        model, x = ResNet().eval(), torch.randn(2, 3, 8, 8)
        file = pathlib.Path(self.folder.name) / "program.pt2"
        torch.export.save(self.exported(model, x), file)
        graph = composit.load_pt2(file)
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(graph.evaluate([x.numpy()])[0]), model(x))


class FamilyTest(Saved):
    """Dynamic shapes are sizes of a family."""

    def assert_same_at(self, program, family, *calls):
        module = program.module()
        with torch.no_grad():
            for arguments in calls:
                self.assertTrue(same_bits(family(*arguments), module(*arguments)),
                                [list(t.shape) for t in leaves(arguments)])

    def test_a_transformer(self):
        model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
        dims = {"src": {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=64)}}
        program = torch.export.export(model, (torch.randn(2, 6, 16),), dynamic_shapes=dims,
                                      strict=False).run_decompositions({})
        family = self.loaded(program)
        self.assertEqual(list(family.sizes.values())[1], range(2, 65))
        calls = [(torch.randn(*sizes, 16),) for sizes in ((2, 6), (5, 17), (3, 64), (40, 2))]
        self.assert_same_at(program, family, *calls)
        with self.assertRaises(flashlight.Error):
            family(torch.randn(2, 65, 16))
        with torch.no_grad():
            torch.testing.assert_close(family.compile("mosaic")(*calls[1]), model(*calls[1]))

    def test_numbers_that_follow_from_sizes(self):
        class Program(torch.nn.Module):
            def forward(self, x, parts):
                batch, tokens = x.shape
                y = parts["y"]
                return (x.view(-1).reshape(batch * 2, -1), torch.arange(batch) * tokens,
                        torch.cat([x, y]), x[:, : (tokens + 1) // 2], y.new_full((tokens,), batch))

        auto, double = torch.export.Dim.AUTO, 2 * torch.export.Dim("half", max=100)
        program = torch.export.export(
            Program(), (torch.randn(4, 6), {"y": torch.randn(2, 6)}), strict=False,
            dynamic_shapes={"x": {0: auto, 1: double}, "parts": {"y": {0: auto, 1: double}}},
        ).run_decompositions({})
        family = self.loaded(program)
        self.assert_same_at(program, family, *(
            (torch.randn(a, t), {"y": torch.randn(b, t)})
            for a, b, t in ((4, 2, 6), (2, 5, 200), (7, 3, 10))))
        with self.assertRaisesRegex(flashlight.Error, "multiple of 2"):
            family(torch.randn(4, 7), {"y": torch.randn(2, 7)})

    def test_what_the_program_asked_of_sizes(self):
        class Program(torch.nn.Module):
            def forward(self, x):
                return x + 1 if x.shape[0] % 3 == 0 else x - 1

        program = torch.export.export(
            Program(), (torch.randn(6, 2),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}},
            strict=False).run_decompositions({})
        family = self.loaded(program)
        self.assert_same_at(program, family, (torch.randn(3, 2),), (torch.randn(30, 2),))
        for size in (4, 5):  # where it takes the other way
            with self.assertRaises(flashlight.Error):
                family(torch.randn(size, 2))

    def test_conditions_on_arguments_in_arguments(self):
        class Program(torch.nn.Module):
            def forward(self, d, d_k):
                x = d["k"][0]
                return (x + 1 if x.shape[0] % 3 == 0 else x - 1), d_k * 2

        auto = torch.export.Dim.AUTO
        program = torch.export.export(
            Program(), ({"k": [torch.randn(6, 2)]}, torch.randn(4)), strict=False,
            dynamic_shapes={"d": {"k": [{0: auto}]}, "d_k": {0: auto}}).run_decompositions({})
        family = self.loaded(program)
        self.assert_same_at(program, family, ({"k": [torch.randn(9, 2)]}, torch.randn(5)))
        with self.assertRaises(flashlight.Error):
            family({"k": [torch.randn(10, 2)]}, torch.randn(5))

    def test_conditions_that_no_range_has(self):
        class Program(torch.nn.Module):
            def forward(self, x):
                return x + 1 if x.shape[0] != 7 else x - 1

        program = torch.export.export(
            Program(), (torch.randn(6, 2),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}},
            strict=False).run_decompositions({})
        with self.assertRaisesRegex(flashlight.Error, "may not be 7"):
            self.loaded(program)

    def test_families_of_our_own(self):
        model = torch.nn.Linear(6, 4)

        def inputs(batch, tokens):
            return (torch.randn(batch, tokens, 6),), {}

        with torch.no_grad():
            family = flashlight.trace_family(
                lambda x: model(x).reshape(x.shape[0] * x.shape[1], 4) * x.shape[1], inputs,
                sizes={"batch": (2, 6), "tokens": (4, 20, 2)})
        first, second = (pathlib.Path(self.folder.name) / name for name in ("a.pt2", "b.pt2"))
        family.export(first)
        flashlight.load_pt2(first).export(second)
        for file in (first, second):
            read = flashlight.load_pt2(file)
            self.assertEqual(list(read.sizes.values()), [range(2, 7), range(4, 21, 2)])
            self.assert_same_at(torch.export.load(file), read,
                                *(inputs(*at)[0] for at in ((2, 4), (6, 20), (3, 8))))


class RefusedTest(Saved):
    def refused(self, function, *arguments, functional=True):
        class Program(torch.nn.Module):
            def forward(self, *values):
                return function(*values)

        with self.assertRaises(flashlight.Error) as raised:
            self.loaded(self.exported(Program(), *arguments, functional=functional))
        return str(raised.exception)

    def test_a_write_beside_a_view(self):
        def program(x):
            y = x * 2
            row = y[0]
            y.add_(1)
            return row

        message = self.refused(program, torch.randn(2, 3), functional=False)
        self.assertIn("run_decompositions({})", message)
        self.assertIn("pt2_read_test.py:", message)

    def test_numbers_of_tensors(self):
        message = self.refused(lambda x: x * x.sum().item(), torch.randn(3))
        self.assertIn("reads a number of a tensor", message)

    def test_autocast(self):
        def program(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return x @ x

        message = self.refused(program, torch.randn(3, 3), functional=False)
        self.assertIn("run_decompositions({})", message)

    def test_what_is_no_such_file(self):
        file = pathlib.Path(self.folder.name) / "other.pt2"
        torch.save({"a": torch.ones(3)}, file)
        with self.assertRaisesRegex(flashlight.Error, "none of torch.export"):
            flashlight.load_pt2(file)
        with self.assertRaisesRegex(flashlight.Error, "No such file"):
            flashlight.load_pt2(file.with_suffix(".none"))


class ArchitectureTest(Saved):
    """Small ones of transformers, on other inputs than they were exported with."""

    def test_the_bits_of_torch(self):
        for name in TRANSFORMERS:
            with self.subTest(name):
                original = architectures.make(name)
                program = exported(Results(original).eval(), *original.inputs(seed=1))
                arguments, keywords = original.inputs(seed=2)
                self.assert_same(program, self.loaded(program), tuple(arguments), keywords)


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # of torch, about what it pickles
