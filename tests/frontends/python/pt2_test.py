"""Captures as files of torch.export: what torch.export.load gives back runs with the same bits, has the
names and the structure of the program, and raises where the capture would not hold."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import no_looks  # before flashlight
import torch

import flashlight
from agreement import same_bits


def exported(captured, **options):
    """The program that torch.export reads of a capture."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "program.pt2"
        captured.export(file, **options)
        return torch.export.load(file)


class Block(torch.nn.Module):
    """What a file has to say: tied and strided weights, a buffer that is written, modules in modules."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
        self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.two.weight = self.one.weight
        self.across = torch.nn.Parameter(torch.randn(4, 4).t())
        self.frozen = torch.nn.Parameter(torch.randn(4), requires_grad=False)

    def forward(self, x):
        y = torch.relu(self.stem(x)).mean((2, 3))
        return self.two(self.one(y)) @ self.across + self.frozen


class ProgramTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_a_module_keeps_its_bits_and_its_state(self):
        model = Block()
        x = torch.randn(2, 3, 8, 8)
        captured = flashlight.trace(model, x)
        module = exported(captured).module()
        for _ in range(3):  # batch norm's buffers move from call to call
            self.assertTrue(same_bits(module(x), captured(x)))
        ours, theirs = model.state_dict(), module.state_dict()
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, value in ours.items():
            self.assertTrue(same_bits(value, theirs[name]), name)

    def test_an_argument_called_like_a_word_of_python(self):
        captured = flashlight.trace(lambda x: x.clone().uniform_(), torch.zeros(4))
        torch.manual_seed(5)
        expected = torch.zeros(4).uniform_()
        torch.manual_seed(5)
        self.assertTrue(same_bits(exported(captured).module()(torch.zeros(4)), expected))

    def test_names_ties_strides_and_gradients_stay(self):
        model = Block()
        program = exported(flashlight.trace(model, torch.randn(2, 3, 8, 8)))
        self.assertEqual(set(program.state_dict), set(model.state_dict()))
        state = program.state_dict
        self.assertEqual(state["one.weight"].data_ptr(), state["two.weight"].data_ptr())
        self.assertEqual(state["across"].stride(), (1, 4))
        self.assertIsInstance(state["across"], torch.nn.Parameter)
        self.assertNotIsInstance(state["stem.1.running_mean"], torch.nn.Parameter)
        self.assertTrue(state["one.weight"].requires_grad)
        self.assertFalse(state["frozen"].requires_grad)

    def test_gradients_are_autograds(self):
        model = Block()
        x = torch.randn(2, 3, 8, 8)
        module = exported(flashlight.trace(model, x)).module()
        for one in (model, module):
            one(x).square().sum().backward()
        ours = dict(model.named_parameters())
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and name != "two.weight":
                torch.testing.assert_close(parameter.grad, ours[name].grad, msg=name)

    def test_nothing_flows_through_what_ran_without_gradients(self):
        def program(x, y):
            with torch.no_grad():
                scale = y.exp()
            return (x * scale).sum()

        x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        module = exported(flashlight.trace(program, x, y)).module()
        module(x, y).backward()
        self.assertIsNone(y.grad)
        self.assertTrue(torch.equal(x.grad, y.detach().exp()))

    def test_modules_come_back(self):
        model = Block().eval()
        x = torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            program = exported(flashlight.trace(model, x))
            again = torch.export.unflatten(program)
            self.assertEqual(dict(again.named_modules()).keys() & {"stem.0", "stem.1", "one", "two"},
                             {"stem.0", "stem.1", "one", "two"})
            self.assertTrue(same_bits(again(x), model(x)))

    def test_a_module_that_is_called_again(self):
        class Twice(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

            def forward(self, x):
                return self.layer(self.other(self.layer(x).relu()).relu())

        model, x = Twice(), torch.randn(2, 3)
        with torch.no_grad():
            again = torch.export.unflatten(exported(flashlight.trace(model, x)))
            self.assertTrue(same_bits(again(x), model(x)))

    def test_it_is_a_program_that_tools_decompose(self):
        model = Block().eval()
        x = torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            program = exported(flashlight.trace(model, x)).run_decompositions()
            torch.testing.assert_close(program.module()(x), model(x))

    def test_lines_are_stack_traces(self):
        program = exported(flashlight.trace(Block(), torch.randn(2, 3, 8, 8)))
        traces = [n.stack_trace for n in program.graph.nodes if n.op == "call_function"]
        self.assertTrue(any('pt2_test.py", line' in (t or "") for t in traces), traces)

    def test_arguments_and_results_keep_their_structure(self):
        def program(x, scale, *, extra, flag=True, name="a", nothing=None):
            y = x * scale + extra["a"][0]
            return {"y": y, "pair": (y + 1, [None, y.sum()])}

        x, a = torch.randn(3), torch.randn(3)
        module = exported(flashlight.trace(program, x, 2.5, extra={"a": [a]}, flag=True, name="b",
                                           nothing=None)).module()
        received = module(x, 2.5, extra={"a": [a]}, flag=True, name="b", nothing=None)
        self.assertEqual(set(received), {"y", "pair"})
        self.assertIsNone(received["pair"][1][0])
        self.assertTrue(same_bits(received, program(x, 2.5, extra={"a": [a]})))
        with self.assertRaises(Exception):
            module(x, 3.5, extra={"a": [a]}, flag=True, name="b", nothing=None)

    def test_examples_come_along(self):
        x, a = torch.randn(3), torch.arange(3)
        program = exported(flashlight.trace(lambda x, *, a: x * a, x, a=a))
        arguments, keywords = program.example_inputs
        self.assertTrue(same_bits(arguments[0], x))
        self.assertTrue(same_bits(keywords["a"], a))


class DerivativeTest(unittest.TestCase):
    def test_gradients_are_a_program(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                    torch.nn.Linear(144, 5), torch.nn.LayerNorm(5))

        def loss(x, target):
            return torch.nn.functional.cross_entropy(model(x), target)

        x, target = torch.randn(2, 3, 8, 8), torch.tensor([1, 4])
        gradient = flashlight.trace(loss, x, target).grad()
        module = exported(gradient).module()
        value, gradients = module(x, target)
        expected = loss(x, target)
        expected.backward()
        self.assertTrue(same_bits(value.detach(), expected.detach()))
        for name, parameter in model.named_parameters():
            found = [g for n, g in gradients.items() if n.endswith(name)]
            torch.testing.assert_close(found[0].detach(), parameter.grad, msg=name)


class FamilyTest(unittest.TestCase):
    """Sizes are dynamic shapes, within what was shown."""

    def setUp(self):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(6, 4)

        def program(x, mask):
            batch, tokens, _ = x.shape
            y = self.model(x).reshape(batch * tokens, 2, 2).sum(1).view(batch, tokens, 2)
            half = y[:, : (tokens + 1) // 2]
            return half * tokens + torch.arange(2) * mask.sum(), y.new_zeros(batch, tokens + 3)

        self.program = program
        with torch.no_grad():
            self.family = flashlight.trace_family(
                program, self.inputs, sizes={"batch": (2, 6), "tokens": (4, 20, 2)})

    def inputs(self, batch, tokens):
        return (torch.randn(batch, tokens, 6), torch.randn(batch, tokens)), {}

    def test_all_sizes_have_the_bits_of_the_program(self):
        module = exported(self.family).module()
        for batch, tokens in ((2, 4), (3, 6), (6, 20), (5, 14)):
            arguments, _ = self.inputs(batch, tokens)
            with torch.no_grad():
                self.assertTrue(same_bits(module(*arguments), self.program(*arguments)))

    def test_sizes_that_were_not_shown_are_refused(self):
        program = exported(self.family)
        self.assertEqual({(int(r.lower), int(r.upper)) for r in program.range_constraints.values()},
                         {(2, 6), (4, 20)})
        module = program.module()
        for batch, tokens in ((7, 4), (2, 22), (1, 4), (2, 2), (2, 5)):
            with self.assertRaises((RuntimeError, AssertionError), msg=(batch, tokens)):
                module(*self.inputs(batch, tokens)[0])
        (x, _), (_, mask) = self.inputs(2, 4)[0], self.inputs(2, 6)[0]
        with self.assertRaises((RuntimeError, AssertionError)):
            module(x, mask)  # two sizes for one

    def test_integers_that_are_what_an_operator_takes_otherwise_at_the_first_size(self):
        def program(x):
            return torch.diagonal(x, offset=x.shape[0] - 4) * 2

        shown = [torch.randn(n, n + 3) for n in (4, 6, 9)]
        module = exported(flashlight.trace_family(program, shown)).module()
        for n in (4, 5, 8):
            x = torch.randn(n, n + 3)
            self.assertTrue(same_bits(module(x), program(x)))

    def test_sizes_that_depend_on_values(self):
        def program(x):
            chosen = x[x[:, 0] > 0]
            return chosen.reshape(-1, 2) * 2, chosen.new_ones(chosen.shape[0]).sum()

        def inputs(rows):
            return (torch.randn(rows, 4),), {}

        module = exported(flashlight.trace_family(program, inputs, sizes={"rows": (3, 9)})).module()
        for rows in (3, 5, 9, 9, 9):
            (x,), _ = inputs(rows)
            self.assertTrue(same_bits(module(x), program(x)))

    def test_a_tensor_that_was_made_of_a_size_is_refused(self):
        def program(x):
            return torch.cat([x.long(), torch.tensor([x.shape[0]])])

        family = flashlight.trace_family(program, lambda n: ((torch.randn(n),), {}),
                                         sizes={"n": (2, 9)})
        with self.assertRaisesRegex(flashlight.Error, "made of a size"):
            exported(family)

    def test_tools_decompose_it(self):
        module = exported(self.family).run_decompositions().module()
        arguments, _ = self.inputs(4, 8)
        with torch.no_grad():
            torch.testing.assert_close(module(*arguments), self.program(*arguments))


def number(value):
    return torch.tensor(value, dtype=torch.float64)


class NumbersTest(unittest.TestCase):
    """Numbers of a family are arguments of float64 without axes; what follows from them has the bits of Python."""

    def test_a_number_that_the_program_holds(self):
        rate = [0.1]

        def program(x):
            y = x * rate[0] + torch.add(x, x.sum(), alpha=1.0 - rate[0])
            return torch.full_like(y, rate[0]) + y.view(x.shape[0] * 2, -1).sum(), y / (rate[0] + 3.0)

        def examples():
            for rate[0], rows in ((0.1, 2), (0.37, 5), (0.05, 9), (0.2, 9)):
                yield (torch.randn(rows, 4),)

        with torch.no_grad():
            family = flashlight.trace_family(program, examples(), numbers={"rate": lambda: rate[0]})
            exported_program = exported(family)
            module = exported_program.module()
            for rate[0], rows in ((0.1, 2), (0.625, 7), (0.3, 4)):
                x = torch.randn(rows, 4)
                self.assertTrue(same_bits(module(x, rate=number(rate[0])), program(x)))
            x, rate[0] = torch.randn(3, 4), 0.77
            decomposed = exported_program.run_decompositions().module()
            torch.testing.assert_close(decomposed(x, rate=number(rate[0])), program(x))
            with self.assertRaises((RuntimeError, AssertionError, TypeError)):
                module(x, rate=torch.tensor(0.5))  # of another dtype
            with self.assertRaises((RuntimeError, AssertionError, TypeError)):
                module(torch.randn(12, 4), rate=number(0.5))

    def test_a_number_among_arguments(self):
        def program(x, temperature):
            return (x / temperature).softmax(-1)

        for by_name in (True, False):
            def example(temperature):
                x = torch.randn(3, 5)
                return ((x,), {"temperature": temperature}) if by_name else ((x, temperature), {})

            with torch.no_grad():
                family = flashlight.trace_family(program, [example(t) for t in (2.0, 1.37, 0.21)])
            module, x = exported(family).module(), torch.randn(3, 5)
            arguments = ((x,), {"temperature": number(0.55)}) if by_name else ((x, number(0.55)), {})
            self.assertTrue(same_bits(module(*arguments[0], **arguments[1]), program(x, 0.55)))

    def test_whole_numbers_stay_whole(self):
        family = flashlight.trace_family(lambda x, power: x * power, [
            ((torch.randn(3), p), {}) for p in (2.0, 3.0, 5.0)])
        module, x = exported(family).module(), torch.randn(3)
        self.assertTrue(same_bits(module(x, number(7.0)), x * 7.0))
        with self.assertRaises(RuntimeError):
            module(x, number(2.5))

    def test_calls_of_an_optimizer(self):
        """Numbers that the program works out of the count of its calls are computed by the file."""
        calls, rate = [0], [0.1]

        def step(x):
            y = torch.addcmul(x, x, x, value=-(rate[0] / (1.0 - 0.9 ** (calls[0] + 1))))
            return y * (1.0 - rate[0])

        def examples():
            for calls[0], rate[0] in enumerate((0.1, 0.05, 0.37, 0.21, 0.3)):
                yield torch.randn(4)

        with torch.no_grad():
            family = flashlight.trace_family(step, examples(), numbers={
                "calls": lambda: calls[0], "rate": lambda: rate[0]})
            module = exported(family).module()
            self.assertIn("pow(0.9, calls + 1.0)", str(family))
            for calls[0] in (3, 17, 256):
                x, count = torch.randn(4), number(float(calls[0]))
                self.assertTrue(same_bits(module(x, calls=count, rate=number(rate[0])), step(x)))


class WritesTest(unittest.TestCase):
    def test_an_argument_is_written(self):
        def program(x, y):
            x.mul_(2).add_(y)
            return x.sum()

        module = exported(flashlight.trace(program, torch.ones(3), torch.ones(3))).module()
        x, y = torch.randn(3), torch.randn(3)
        expected = x.clone()
        total = program(expected, y)
        self.assertTrue(same_bits(module(x, y), total))
        self.assertTrue(same_bits(x, expected))

    def step(self):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        x, y = torch.randn(4, 3), torch.randn(4, 2)
        for _ in range(2):  # momentum begins as a copy
            step(x, y)
        return model, step, x, y

    def test_a_step_of_sgd_keeps_its_state(self):
        for as_buffers in (False, True):
            model, step, x, y = self.step()
            module = exported(flashlight.trace(step, x, y),
                              parameters_as_buffers=as_buffers).module()
            # The capture was made before the step that it records.
            with torch.no_grad():
                state = {n: p.clone() for n, p in module.state_dict().items()}
            for _ in range(3):
                expected = step(x, y)
                with torch.no_grad():  # it writes parameters
                    received = module(x, y)
                self.assertTrue(same_bits(received, expected))
            self.assertTrue(any(not torch.equal(state[n], p)
                                for n, p in module.state_dict().items()))


class PromisesTest(unittest.TestCase):
    def test_a_number_that_is_another_raises(self):
        def program(x):
            return x + 1 if x.sum() > 0 else x - 1

        module = exported(flashlight.trace(program, torch.ones(3))).module()
        self.assertTrue(same_bits(module(torch.ones(3) * 2), torch.ones(3) * 2 + 1))
        with self.assertRaisesRegex(RuntimeError, "the number that the program reads .*pt2_test.py"):
            module(-torch.ones(3))

    def test_a_size_that_is_another_raises(self):
        module = exported(flashlight.trace(lambda x: x.nonzero().float().sum(0),
                                           torch.tensor([1, 0, 2]))).module()
        self.assertTrue(same_bits(module(torch.tensor([0, 3, 2])), torch.tensor([3.0])))
        with self.assertRaisesRegex(RuntimeError, "a size that follows from values"):
            module(torch.tensor([1, 1, 1]))

    def test_a_dtype_that_is_another_raises(self):
        module = exported(flashlight.trace(lambda x: x + 1, torch.ones(3))).module()
        with self.assertRaises(Exception):
            module(torch.ones(3, dtype=torch.int64))
        with self.assertRaises(Exception):
            module(torch.ones(4))

    def test_draws_are_torchs(self):
        def program(x):
            return torch.dropout(x, 0.5, True) + torch.rand(3) + torch.randn_like(x)

        x = torch.randn(3)
        module = exported(flashlight.trace(program, x)).module()
        torch.manual_seed(5)
        expected = program(x)
        torch.manual_seed(5)
        self.assertTrue(same_bits(module(x), expected))

    def test_constants_come_along(self):
        table = torch.randn(100)
        module = exported(flashlight.trace(lambda x: x * table + torch.tensor([1.0, 2.0]).sum(),
                                           torch.ones(100))).module()
        x = torch.randn(100)
        self.assertTrue(same_bits(module(x), x * table + 3))

    def test_numbers_beside_integers_promote_as_they_did(self):
        def program(i, b):
            return i * 2.5, i + True, b * 3, torch.where(b, i, 2.5), i / 2, i.float() // 3

        i, b = torch.arange(3), torch.tensor([True, False, True])
        module = exported(flashlight.trace(program, i, b)).module()
        self.assertTrue(same_bits(module(i, b), program(i, b)))


class RefusedTest(unittest.TestCase):
    def refusal(self, captured, name="program.pt2"):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / name
            with self.assertRaises(flashlight.Error) as caught:
                captured.export(file)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
        return str(caught.exception)

    def test_all_that_has_no_form_is_listed_with_its_line(self):
        generator = torch.Generator()

        def program(x):
            a = torch.rand(3, generator=generator)
            return x + a + torch.randn(3, generator=generator)

        text = self.refusal(flashlight.trace(program, torch.ones(3)))
        self.assertRegex(text, r"aten::rand\S* .*pt2_test.py:\d+ in \S*program: it draws from")
        self.assertRegex(text, r"aten::randn\S* .*pt2_test.py:\d+ in \S*program: it draws from")

    def test_keywords_that_no_function_can_have(self):
        captured = flashlight.trace(lambda **tensors: tensors["lambda"] + 1,
                                    **{"lambda": torch.ones(3)})
        self.assertIn("the keyword 'lambda'", self.refusal(captured))

    def test_cases_whose_results_are_not_alike(self):
        def program(x):
            return x.relu() if x.shape[0] > 4 else x.tanh()[None]

        family = flashlight.trace_family(program, lambda n: ((torch.randn(n),), {}),
                                         sizes={"n": (2, 9)})
        self.assertIn("its cases give results of another structure, dtype or number of axes", self.refusal(family))

    def test_another_ending(self):
        captured = flashlight.trace(lambda x: x + 1, torch.ones(3))
        self.assertIn("ends in .pt2 or .onnx", self.refusal(captured, "program.bin"))


if __name__ == "__main__":
    unittest.main()
