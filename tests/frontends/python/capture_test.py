"""What Python does around a captured program: threads, exceptions, generators, modes, nested values,
values that leave the dispatcher, and what is said where a program cannot be captured."""

import collections
import copy
import dataclasses
import os
import pathlib
import pickle
import sys
import tempfile
import threading
import traceback
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import numpy as np
import torch
from torch.nn.modules import module as torch_modules

import flashlight
from agreement import TIMES, numbers, same_bits, times_further


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def line_of(text):
    """Where in this file the line with `text` is, as graphs and messages name it."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return f"{pathlib.Path(__file__).name}:{next(i for i, l in enumerate(lines, 1) if text in l)}"


def ops(captured):
    return [node.op for node in captured.graph.nodes]


class CaptureTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x, self.y = torch.randn(4, 3), torch.randn(4, 3)

    def agree(self, function, *inputs):
        """A capture of `function` on x does on y what the function does, and check says so."""
        captured = flashlight.trace(function, self.x)
        self.assertTrue(same_bits(captured(self.y), function(self.y)))
        report = captured.check(self.y)
        self.assertTrue(report, str(report))
        return captured


class Threads(CaptureTest):
    def test_captures_at_once_see_their_own_thread_only(self):
        models = [network() for _ in range(4)]
        captured = [None] * len(models)
        stop = threading.Event()

        def disturb():
            model = network()
            while not stop.is_set():
                model(self.x).sin().sum()

        def capture(i):
            for _ in range(20):
                captured[i] = flashlight.trace(models[i], self.x)

        others = [threading.Thread(target=disturb)]
        workers = [threading.Thread(target=capture, args=(i,)) for i in range(len(models))]
        for thread in others + workers:
            thread.start()
        for thread in workers:
            thread.join()
        stop.set()
        others[0].join()
        expected = flashlight.trace(network(), self.x).graph
        for one, model in zip(captured, models):
            self.assertEqual(one.graph, expected)
            self.assertTrue(same_bits(one(self.y), model(self.y)))

    def test_module_of_the_capture_run_by_another_thread(self):
        """Torch's hooks are those of the process: the other thread's modules are not entered."""
        model = network()
        own = torch.ones(1, 4)  # a value of the program must not be another thread's

        def program(x):
            thread = threading.Thread(target=model[2], args=(own,))
            thread.start()
            thread.join()
            return model[0](x).sin()

        captured = flashlight.trace(program, self.x)
        self.assertEqual(ops(captured).count("aten::linear"), 1)
        sin = [node for node in captured.graph.nodes if node.op == "aten::sin"][0]
        self.assertEqual(sin.annotations.get("scope", ""), "")

    def test_replays_and_compiled_calls_at_once(self):
        model = network()
        captured = flashlight.trace(model, self.x)
        compiled = captured.compile("cpp")
        expected, wrong = model(self.y), []

        def run():
            for _ in range(50):
                if not same_bits(captured(self.y), expected):
                    wrong.append("replay")
                if not torch.allclose(compiled(self.y), expected, rtol=1e-5, atol=1e-6):
                    wrong.append("compiled")

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Exceptions(CaptureTest):
    def test_an_exception_passes_through_and_leaves_nothing_behind(self):
        class Raises(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 3)

            def forward(self, x):
                self.inner(x)
                raise KeyError("mine")

        before = (len(torch_modules._global_forward_hooks),
                  len(torch_modules._global_forward_pre_hooks))
        with self.assertRaisesRegex(KeyError, "mine"):
            flashlight.trace(Raises(), self.x)
        self.assertEqual(before, (len(torch_modules._global_forward_hooks),
                                  len(torch_modules._global_forward_pre_hooks)))
        captured = flashlight.trace(torch.sin, self.x)
        self.assertEqual(ops(captured), ["composit::input", "aten::sin"])
        self.assertEqual(captured.graph.nodes[1].annotations.get("scope", ""), "")

    def test_an_exception_that_the_program_catches(self):
        def program(x):
            try:
                return x.view(5)
            except RuntimeError:
                return x * 2

        self.agree(program)

    def test_wrong_arguments(self):
        captured = flashlight.trace(network(), self.x)
        for arguments, message in (
                ((self.x, self.x), r"expected arguments \(tensor\), received \(tensor, tensor\)"),
                ((self.x.double(),), r"expected float32 \[4, 3\].* received float64 \[4, 3\]"),
                ((torch.ones(5, 3),), r"expected float32 \[4, 3\].* received float32 \[5, 3\]"),
                (("text",), r"expected arguments \(tensor\), received \('text'\)"),
                ((iter("abc"),), r"arguments\[0\]\[0\] is a builtins.str_")):
            with self.assertRaisesRegex(flashlight.Error, message):
                captured(*arguments)

    def test_a_number_among_the_arguments_is_part_of_the_capture(self):
        captured = flashlight.trace(lambda x, power: x ** power, self.x, power=3)
        self.assertTrue(same_bits(captured(self.y, power=3), self.y ** 3))
        with self.assertRaisesRegex(flashlight.Error, r"power=3.*power=2"):
            captured(self.y, power=2)

    def test_unsupported_arguments_and_results_are_named(self):
        with self.assertRaisesRegex(flashlight.Error, r"arguments\[0\]\[1\] is a torch._C.Generator"):
            flashlight.trace(lambda x, generator: x, self.x, torch.Generator())
        with self.assertRaisesRegex(flashlight.Error, r"result\['f'\] is a builtins.function"):
            flashlight.trace(lambda x: {"f": lambda: x}, self.x)

    def test_a_model_that_wants_the_network(self):
        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import AutoModel

        def program(x):
            return AutoModel.from_pretrained("no-such/model-anywhere")(x)

        try:
            flashlight.trace(program, self.x)
            self.fail("found on the network")
        except OSError as error:
            lines = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}"
                     for frame in traceback.extract_tb(error.__traceback__)]
        self.assertIn(line_of("no-such/model-anywhere"), lines)


class Randomness(CaptureTest):
    def test_default_generator(self):
        captured = flashlight.trace(lambda x: x + torch.rand_like(x), self.x)
        torch.manual_seed(5)
        expected = self.x + torch.rand_like(self.x)
        torch.manual_seed(5)
        self.assertTrue(same_bits(captured(self.x), expected))

    def test_generator_of_the_program(self):
        generator = torch.Generator().manual_seed(1)

        def program(x):
            return x + torch.randn(x.shape, generator=generator)

        captured = flashlight.trace(program, self.x)
        generator.manual_seed(5)
        expected = program(self.y)
        generator.manual_seed(5)
        self.assertTrue(same_bits(captured(self.y), expected))
        self.assertFalse(same_bits(captured(self.y), expected))

    def test_manual_seed_inside_is_an_assumption(self):
        def program(x):
            torch.manual_seed(3)
            return x + torch.rand(3)

        captured = flashlight.trace(program, self.x)
        torch.rand(9)
        self.assertTrue(same_bits(captured(self.y), program(self.y)))
        self.assertTrue([line for line in captured.assumptions() if "random generator" in line])


class Modes(CaptureTest):
    def test_autocast(self):
        model = network()

        def program(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x)

        self.assertEqual(self.agree(program)(self.x).dtype, torch.bfloat16)

    def test_products_of_16_bits_are_as_near_as_torchs(self):
        for dtype in (torch.bfloat16, torch.float16):
            torch.manual_seed(3)
            x, other = torch.randn(70, 300).to(dtype), torch.randn(70, 40).to(dtype)
            linear = torch.nn.Linear(300, 40).to(dtype).requires_grad_(False)
            programs = {"linear": (linear, copy.deepcopy(linear).double()),
                        "matmul": (lambda x: x.T @ other, lambda x: x.T @ other.double())}
            for name, (program, exact) in programs.items():
                with self.subTest(name, dtype=dtype):
                    compiled = flashlight.trace(program, x).compile("mosaic", threads=2)
                    received, expected = compiled(x), program(x)
                    self.assertEqual(received.dtype, dtype)
                    times = times_further(numbers(received), numbers(expected),
                                          numbers(exact(x.double())))
                    self.assertLessEqual(times, TIMES)

    def test_inference_mode_inside_and_around(self):
        model = network()

        def program(x):
            with torch.inference_mode():
                return model(x) * 2

        self.agree(program)
        with torch.inference_mode():
            self.agree(lambda x: model(x))

    def test_no_grad_passes_on_nothing(self):
        model = network()

        def program(x):
            with torch.no_grad():
                hidden = model[0](x)
            return (hidden * model[2].weight.sum()).sum()

        captured = flashlight.trace(program, self.x)
        report = captured.check_grad(self.y)
        self.assertTrue(report, str(report))
        _, gradients = captured.grad(0, ["model.0.weight"])(self.y)
        self.assertEqual(float(gradients["model.0.weight"].abs().max()), 0)

    def test_scopes_nest(self):
        model = network()

        def program(x):
            inner = flashlight.trace(model, x)
            return inner(x) + 1

        captured = flashlight.trace(program, self.x)
        self.assertTrue(same_bits(captured(self.y), program(self.y)))
        report = captured.check(self.y, strict=False)
        self.assertTrue(report, str(report))

    def test_compiled_code_inside_a_capture_is_refused(self):
        compiled = flashlight.trace(network(), self.x).compile("cpp", name="inner")
        with self.assertRaisesRegex(flashlight.Error, r"\[inner\] runs inside a program"):
            flashlight.trace(lambda x: compiled(x) * 2, self.x)
        self.assertEqual(compiled(self.x).shape, (4, 2))  # and works outside again

    def test_python_generators(self):
        self.agree(lambda x: sum(x * i for i in range(3)))


class TwiceTheGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(context, gradient):
        return 2 * gradient


@torch.library.custom_op("flashlight_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)


class OwnOperators(CaptureTest):
    def test_autograd_function(self):
        model = network()
        captured = flashlight.trace(lambda x: TwiceTheGradient.apply(model(x)).sum(), self.x)
        self.assertTrue(same_bits(captured(self.y), model(self.y).sin().sum()))
        with self.assertRaisesRegex(flashlight.Error, "TwiceTheGradientBackward"):
            captured.grad()

    def test_a_number_written_into_a_tensor(self):
        """Python hands `0.5` to the operator as a float64 tensor."""
        def program(x):
            y = x.sin()
            y *= 0.5
            y /= 3.0
            return y

        captured = self.agree(program)
        self.assertLessEqual({"aten::mul.Tensor", "aten::div.Tensor"}, set(ops(captured)))
        for backend in ("cpp", "mosaic"):
            torch.testing.assert_close(captured.compile(backend)(self.y), program(self.y))

    def test_custom_operator_is_one_node(self):
        captured = self.agree(lambda x: doubled(x) + 1)
        self.assertIn("flashlight_tests::doubled", ops(captured))
        for backend in ("cpp", "mosaic"):  # by node and line
            with self.assertRaisesRegex(flashlight.Error,
                                        "'flashlight_tests::doubled' at " +
                                        line_of("self.agree(lambda x: doubled(x) + 1)")):
                captured.compile(backend)


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor | None = None
    scale: float = 2.0


Point = collections.namedtuple("Point", "x y")


class Holder:
    def __init__(self, value):
        self.value, self.count = value, 3


class NestedValues(CaptureTest):
    def test_nested_arguments_and_results(self):
        from transformers.modeling_outputs import BaseModelOutput

        def program(pair, *rest, table, point=None):
            total = pair.first * pair.scale + table["a"][0] + rest[0] + point.y
            return {"output": BaseModelOutput(last_hidden_state=total), "pair": Pair(total),
                    "point": Point(total, [total, None]), "holder": Holder(total), "n": 3}

        def arguments(x):
            return (Pair(x), x + 1), {"table": {"a": [x, None]}, "point": Point(x, 2 * x)}

        positional, named = arguments(self.x)
        captured = flashlight.trace(program, *positional, **named)
        positional, named = arguments(self.y)
        expected, received = program(*positional, **named), captured(*positional, **named)
        self.assertTrue(same_bits(received, expected))
        for key, value in expected.items():
            self.assertIs(type(received[key]), type(value))
        self.assertTrue(same_bits(received["output"].last_hidden_state, expected["pair"].first))
        self.assertIsNone(received["pair"].second)
        self.assertEqual((received["holder"].count, received["n"]), (3, 3))
        names = [node.attributes["name"] for node in captured.graph.nodes
                 if node.op == "composit::input"]
        self.assertEqual(names, ["input_0.first", "input_1", "input_table.a.0", "input_point.x",
                                 "input_point.y"])

    def test_names_of_modules_around_a_function(self):
        model = network()

        class Trainer:
            def __init__(self):
                self.step_again = self.step
                self.net = model

            def step(self, x):
                return self.net(x)

        def outer(x):
            return inner(x)

        def inner(x):
            return model(x).sum()

        library = {"__name__": "library"}  # another package than this one
        exec("def twice(inner):\n  return lambda x: inner(x) + inner(x)", library)
        inner_twice = library["twice"](model)

        def wrapped(x):
            return inner_twice(x)

        for program, name in ((model, "0.weight"), (model.forward, "0.weight"),
                              (outer, "model.0.weight"), (Trainer().step, "net.0.weight"),
                              (wrapped, "inner.0.weight")):
            self.assertIn(name, flashlight.trace(program, self.x).state())

    def test_saved_and_loaded(self):
        model = network()
        captured = flashlight.trace(lambda x, scale: {"y": model(x) * scale, "s": scale}, self.x,
                                    scale=2.5)
        with tempfile.TemporaryDirectory() as folder:
            captured.save(pathlib.Path(folder) / "net")
            loaded = flashlight.load(f"{folder}/net")
        self.assertEqual(loaded.graph, captured.graph)
        self.assertTrue(same_bits(loaded(self.y, scale=2.5), captured(self.y, scale=2.5)))
        self.assertEqual(loaded(self.y, scale=2.5)["s"], 2.5)
        with self.assertRaises(flashlight.Error):
            loaded(self.y, scale=2)

    def test_pickling_says_what_to_do_instead(self):
        captured = flashlight.trace(network(), self.x)
        compiled = captured.compile("cpp")
        for copier in (copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(flashlight.Error, "captured.save"):
                copier(captured)
            with self.assertRaisesRegex(flashlight.Error, "save its capture"):
                copier(compiled)


class HostValues(CaptureTest):
    def guarded_constant(self, program, read, back):
        """What comes back is a constant, reported with its line; a guard on what was read, with the
        line of the read, refuses other values, and check does not agree on them."""
        captured = flashlight.trace(program, self.x)
        constants = [line for line in captured.assumptions() if "read first at" in line]
        self.assertEqual(len(constants), 1, constants)
        self.assertIn("read first at " + line_of(back), constants[0])
        (name,) = [name for name in captured.constants() if f"'{name}'" in constants[0]]
        self.assertNotIn(name, captured.state())
        guards = [line for line in captured.assumptions() if line.startswith("guard")]
        self.assertTrue(guards and all(line_of(read) in guard for guard in guards), guards)
        self.assertTrue(same_bits(captured(self.x.clone()), program(self.x.clone())))
        with self.assertRaisesRegex(flashlight.Error, line_of(read)):
            captured(self.y)
        for strict in (True, False):
            self.assertTrue(captured.check(self.x.clone(), strict=strict))
            report = captured.check(self.y, strict=strict)
            self.assertFalse(report)
            self.assertIn("constant", str(report))

    def test_an_array_that_comes_back(self):
        def program(x):
            array = np.tanh(x.numpy())  # the array leaves
            return x + torch.from_numpy(array)  # the array is back

        self.guarded_constant(program, "# the array leaves", "# the array is back")

    def test_a_number_that_comes_back(self):
        def program(x):
            number = x.numpy().mean()  # the number leaves
            return x * float(number)  # the number is back

        self.guarded_constant(program, "# the number leaves", "# the number is back")

    def test_a_list_that_comes_back(self):
        def program(x):
            return x * x.tolist()[0][0]  # the list is back

        self.guarded_constant(program, "# the list is back", "# the list is back")

    def test_a_condition_on_a_value_is_a_guard(self):
        def program(x):
            return x * 2 if x.sum() > 0 else x  # the condition

        captured = flashlight.trace(program, torch.ones(4, 3))
        guards = [line for line in captured.assumptions() if line.startswith("guard")]
        self.assertIn(line_of("# the condition"), guards[0])
        for run in (captured, captured.compile("cpp"), captured.compile("mosaic")):
            with self.assertRaisesRegex(flashlight.Error, line_of("# the condition")):
                run(-torch.ones(4, 3))


class NamesOfParameters(CaptureTest):
    def test_a_variable_called_as_modules_have_a_method(self):
        forward = network()
        captured = flashlight.trace(lambda x: forward(x), torch.randn(5, 3))
        compiled = captured.compile("cpp")
        self.assertIn("forward_.0.weight", dict(compiled.named_parameters()))
        x = torch.randn(5, 3)
        torch.testing.assert_close(compiled(x), forward(x))


if __name__ == "__main__":
    no_looks.main()
