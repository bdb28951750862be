"""flashlight.trace_family: one capture for all sizes, in Python."""

import inspect
import pathlib
import tempfile
import unittest

import torch

import flashlight


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.input = torch.nn.Linear(32, 96)
        self.output = torch.nn.Linear(32, 32)

    def forward(self, x, scale=None):
        batch, tokens, _ = x.shape
        heads = self.input(x).view(batch, tokens, 4, 24).transpose(1, 2)
        q, k, v = heads.chunk(3, -1)
        mixed = torch.softmax(q @ k.transpose(2, 3), -1) @ v
        y = self.output(mixed.transpose(1, 2).reshape(batch, tokens, 32))
        return {"y": y if scale is None else y * scale}


def example(batch, tokens):
    return torch.randn(batch, tokens, 32)


EXAMPLES = [(2, 16), (3, 23), (5, 12)]


class FamilyTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.model = Attention().eval()
        self.enterContext(torch.no_grad())

    def family(self):
        return flashlight.trace_family(self.model, [example(*s) for s in EXAMPLES],
                                       sizes=["batch", "tokens"])

    def assert_right(self, call, *sizes):
        x = example(*sizes)
        self.assertTrue(torch.equal(call(x)["y"], self.model(x)["y"]))

    def test_bits_at_sizes_that_nobody_showed(self):
        family = self.family()
        for sizes in [(4, 21), (2, 13), (5, 23)]:
            self.assert_right(family, *sizes)

    def test_text_has_formulas(self):
        self.assertIn("size=[size(%linear, 0), size(%linear, 1), 4, 24]", str(self.family()))
        self.assertEqual(repr(self.family()), "<Family: batch 2..5, tokens 12..23>")
        self.assertEqual(self.family().sizes["tokens"], range(12, 24))

    def test_is_refused_until_it_is_checked(self):
        family = self.family()
        with self.assertRaisesRegex(flashlight.Error, r"\[bind\] batch = 1: shown from 2 to 5"):
            family(example(1, 9))
        self.assertTrue(family.check(example(1, 9)))
        self.assert_right(family, 1, 9)
        self.assertIn("checked at batch = 1, tokens = 9", family.assumptions())

    def test_one_more_example(self):
        family = self.family()
        family.extend(example(7, 40))
        self.assert_right(family, 6, 33)

    def test_chooses_its_examples(self):
        family = flashlight.trace_family(self.model, example,
                                         sizes={"batch": (1, 6), "tokens": (1, 40)})
        for sizes in [(1, 1), (6, 40), (3, 17)]:
            self.assert_right(family, *sizes)

    def test_asks_for_what_it_needs(self):
        def halves(x):
            return x[: (x.shape[0] + 1) // 2] + 1

        family = flashlight.trace_family(halves, lambda rows: torch.randn(rows, 3),
                                         sizes={"rows": (1, 50)})
        for rows in range(1, 51):
            x = torch.randn(rows, 3)
            self.assertTrue(torch.equal(family(x), halves(x)), rows)

    def test_two_ways(self):
        def padded(x):
            tokens = x.shape[1]
            if tokens % 4:
                x = torch.nn.functional.pad(x, (0, 0, 0, 4 - tokens % 4))
            return self.model(x)["y"]

        family = flashlight.trace_family(padded, example,
                                         sizes={"batch": (2, 6), "tokens": (2, 40)})
        self.assertIn("mod(size(%x, 1), 4) == 0: case 1, otherwise case 2", str(family).replace(
            "input_0", "x"))
        with tempfile.TemporaryDirectory() as folder:
            family.save(pathlib.Path(folder) / "family")
            loaded = flashlight.load_family(pathlib.Path(folder) / "family")
        for tokens in range(2, 41):
            x = example(3, tokens)
            for one in (family, loaded):
                self.assertTrue(torch.equal(one(x), padded(x)), tokens)

    def test_ends_that_do_not_hold(self):
        with self.assertRaisesRegex(flashlight.Error, "the range that was declared does not hold"):
            flashlight.trace_family(lambda x: torch.ones(max(x.shape[0], 6)) * x.sum(),
                                    lambda rows: torch.randn(rows, 3), sizes={"rows": (1, 50)})

    def test_composites_see_what_requires_a_gradient(self):
        # `linear` multiplies by another kernel where the transposed weight requires one.
        linear = torch.nn.Linear(32, 32)

        def program(x):
            return linear(x.transpose(0, 1))

        family = flashlight.trace_family(program, [example(*s) for s in EXAMPLES])
        for sizes in [(3, 13), (2, 17), (5, 21), (4, 23)]:
            x = example(*sizes)
            self.assertTrue(torch.equal(family(x), program(x)))

    def test_decodes_with_a_cache(self):
        def step(x, keys, values):  # one token, and what those before it left
            q, k, v = self.model.input(x).view(x.shape[0], 1, 4, 24).transpose(1, 2).chunk(3, -1)
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            places = torch.arange(keys.shape[2]).div(10)  # a number that follows from the position
            mixed = torch.softmax(q @ keys.transpose(2, 3) - places, -1) @ values
            y = self.model.output(mixed.transpose(1, 2).reshape(x.shape[0], 1, 32))
            return y, keys, values

        def inputs(batch, past):
            return (torch.randn(batch, 1, 32), torch.randn(batch, 4, past, 8),
                    torch.randn(batch, 4, past, 8))

        family = flashlight.trace_family(step, [inputs(2, 5), inputs(3, 11), inputs(4, 36)],
                                         sizes=["batch", "past"])
        x, keys, values = inputs(3, 6)
        for _ in range(30):
            expected, received = step(x, keys, values), family(x, keys, values)
            for one, other in zip(expected, received):
                self.assertTrue(torch.equal(one, other))
            x, keys, values = received

    def test_captures(self):
        captured = self.family().at(batch=4, tokens=21)
        self.assert_right(captured, 4, 21)
        with tempfile.TemporaryDirectory() as folder:
            captured.save(pathlib.Path(folder) / "capture")
            self.assert_right(flashlight.load(pathlib.Path(folder) / "capture"), 4, 21)

    def test_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            self.family().save(pathlib.Path(folder) / "family")
            family = flashlight.load_family(pathlib.Path(folder) / "family")
            self.assert_right(family, 4, 21)
            with self.assertRaisesRegex(flashlight.Error, "received a family, which load_family"):
                flashlight.load(pathlib.Path(folder) / "family")
            with self.assertRaisesRegex(flashlight.Error, "does not know its program"):
                family.extend(example(4, 40))

    def test_compiled(self):
        fast = self.family().compile("cpp")
        for sizes in [(4, 21), (2, 13), (4, 21)]:
            x = example(*sizes)
            self.assertLess((fast(x)["y"] - self.model(x)["y"]).abs().max(), 1e-5)
        self.assertEqual(fast.programs, 2)

    def test_sizes_are_data_of_what_mosaic_compiles(self):
        fast = self.family().compile("mosaic")
        for sizes in [(4, 21), (2, 13), (3, 17), (5, 23), (4, 14), (4, 21)]:
            x = example(*sizes)
            self.assertLess((fast(x)["y"] - self.model(x)["y"]).abs().max(), 1e-5)
        self.assertEqual(fast.programs, 5)
        self.assertLess(fast.compilations, 5)

    def test_rows_that_depend_on_values(self):
        def selected(x):
            kept = x[x[:, 0] > 0]
            return kept * kept.shape[0]

        def rows(count):
            return torch.randn(count, 3)

        # Python's shape is a number that no operator reads: a formula of the rows that were kept.
        family = flashlight.trace_family(selected, [rows(20), rows(31), rows(45)], sizes=["rows"])
        for count in [22, 33, 40]:
            x = rows(count)
            self.assertTrue(torch.equal(family(x), selected(x)))
        with self.assertRaisesRegex(flashlight.Error, "whose sizes do not depend on values"):
            family.compile("cpp")

    def test_wrong_use(self):
        with self.assertRaisesRegex(flashlight.Error, "received none"):
            flashlight.trace_family(self.model, [])
        with self.assertRaisesRegex(flashlight.Error, "at least 3 examples"):
            flashlight.trace_family(self.model, [example(2, 16), example(3, 23)])
        with self.assertRaisesRegex(flashlight.Error, "expected the range of each size"):
            flashlight.trace_family(self.model, example)
        with self.assertRaisesRegex(flashlight.Error, "part at .* may decide: add an example at"):
            flashlight.trace_family(
                lambda x: x.sin() if x.shape[0] % 2 else x.cos(),
                [torch.ones(2), torch.ones(3), torch.ones(5)])
        with self.assertRaisesRegex(flashlight.Error, "structures"):
            flashlight.trace_family(
                lambda x: (x + 1, x.shape[0]), [torch.ones(2), torch.ones(3), torch.ones(5)])


class BranchesTest(unittest.TestCase):
    """Programs that ask for values: both ways, and as many trips as it takes."""

    def setUp(self):
        torch.manual_seed(7)
        self.enterContext(torch.no_grad())

    def test_an_early_exit(self):
        body, head, sure = (torch.nn.Linear(16, 16) for _ in range(3))

        def program(x):
            early = sure(x).softmax(-1)
            if early.max(-1).values.min() > 0.15:
                return early
            return head(torch.relu(body(x))).softmax(-1)

        def like(size):
            return torch.randn(4, 16) * size

        family = flashlight.trace_family(program, [(like(8),), (like(0.01),)])
        for size in (9, 0.02, 10, 0.01):
            x = like(size)
            self.assertTrue(torch.equal(family(x), program(x)))
        compiled = family.compile("mosaic")
        for size in (9, 0.02):
            x = like(size)
            torch.testing.assert_close(compiled(x), program(x), rtol=1e-5, atol=1e-6)

    def test_a_while_loop_at_all_sizes(self):
        def largest_eigenvalue(a, x):
            y = a @ x
            y = y / y.norm()
            while (a @ y - (y @ (a @ y)) * y).norm() > 1e-2:
                y = a @ y
                y = y / y.norm()
            return y @ (a @ y)

        def like(size):
            q = torch.randn(size, size)
            return q @ q.T, torch.randn(size)

        family = flashlight.trace_family(
            largest_eigenvalue, [like(6), like(8), like(5), like(9), like(7)]
        )
        self.assertTrue(any("while at" in line for line in family.assumptions()))
        right = 0
        for i in range(12):
            inputs = like(5 + i % 5)
            try:
                result = family(*inputs)
            except flashlight.Error as error:  # more trips, or fewer, than were shown
                self.assertRegex(str(error), "trips|guard")
                continue
            right += 1
            self.assertTrue(torch.equal(result, largest_eigenvalue(*inputs)))
        self.assertGreater(right, 5)

    def test_a_number_that_python_compares(self):
        def program(x):
            if x.sum().item() > 1.5:
                return x * 2
            return x.sin()

        line = program.__code__.co_firstlineno + 1
        examples = [(torch.ones(4),), (-torch.ones(4),)]
        with self.assertRaisesRegex(flashlight.Error, "as a predicate"):
            flashlight.trace_family(program, examples)
        family = flashlight.trace_family(
            program, examples, predicates={f"family_test.py:{line}": "> 1.5"}
        )
        for x in (torch.rand(4) + 1, torch.rand(4) - 1, torch.rand(4) + 2):
            self.assertTrue(torch.equal(family(x), program(x)))


class LoopsTest(unittest.TestCase):
    """Steps that are repeated as often as a size says, of programs that nobody here wrote."""

    def test_mamba_without_its_kernels(self):
        try:
            from transformers import MambaConfig, MambaModel
        except ImportError:
            self.skipTest("transformers is not installed")
        torch.manual_seed(8)
        model = MambaModel(
            MambaConfig(vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=2,
                        intermediate_size=32, time_step_rank=4, use_cache=False)
        ).eval()

        def ids(*sizes):
            return torch.randint(50, sizes)

        with torch.no_grad():
            family = flashlight.trace_family(
                model, [ids(2, 5), ids(3, 9), ids(4, 16)], sizes=["batch", "tokens"]
            )
            self.assertTrue(any("loop at modeling_mamba.py" in x for x in family.assumptions()))
            for sizes in ((2, 6), (4, 13), (3, 16)):
                x = ids(*sizes)
                received, expected = family(x)[0], model(x)[0]
                self.assertTrue(torch.equal(received, expected))

    def test_cells_over_time(self):
        cell, head = torch.nn.LSTMCell(4, 6), torch.nn.Linear(6, 3)

        def program(x):
            state, outputs = None, []
            for part in x.unbind(1):
                state = cell(part, state)
                outputs.append(state[0])
            return head(torch.stack(outputs, 1))

        with torch.no_grad():
            family = flashlight.trace_family(
                program, lambda batch, time: torch.randn(batch, time, 4),
                sizes={"batch": (2, 6), "time": (3, 40)}
            )
            for sizes in ((4, 21), (2, 40), (5, 3)):
                x = torch.randn(*sizes, 4)
                self.assertTrue(torch.equal(family(x), program(x)))


class NumbersTest(unittest.TestCase):
    """Numbers that are no sizes: floats among arguments, and learning rates under a schedule."""

    def setUp(self):
        torch.manual_seed(7)

    def test_floats_among_the_arguments(self):
        layer = torch.nn.Linear(4, 6)

        def annealed(x, *, temperature, weight):
            y = torch.softmax(layer(x) / temperature, -1)
            return y, (1 - weight) * y.sum() + weight * y.max()

        with torch.no_grad():
            family = flashlight.trace_family(
                annealed, [((torch.randn(rows, 4),), {"temperature": t, "weight": w})
                           for rows, t, w in [(3, 2.0, 0.3), (5, 1.37, 0.11), (8, 0.21, 0.77)]],
                sizes=["rows"])
            self.assertEqual(family.numbers, {"temperature": "given", "weight": "given"})
            self.assertIn("1.0 - weight", str(family))
            for t, w in [(0.7, 0.4), (5e-3, 0.9)]:
                x = torch.randn(4, 4)
                expected = annealed(x, temperature=t, weight=w)
                received = family(x, temperature=t, weight=w)
                self.assertTrue(torch.equal(received[0], expected[0]))
                self.assertTrue(torch.equal(received[1], expected[1]))
            with self.assertRaisesRegex(flashlight.Error, "expected the number"):
                family.at(rows=4)
            captured = family.with_numbers(temperature=0.7, weight=0.4).at(rows=4)
            self.assertNotIn("temperature", str(captured.graph))
            with self.assertRaisesRegex(flashlight.Error, "one of the numbers temperature, weight"):
                family.with_numbers(lr=0.1)

    def training(self, make):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = make(model.parameters())

        def step(x):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            NumbersTest.line = inspect.currentframe().f_lineno + 1
            optimizer.step()
            return loss.detach()

        return model, optimizer, step

    def check_training(self, make, predicates=None):
        torch.manual_seed(3)
        eager, eager_optimizer, eager_step = self.training(make)
        torch.manual_seed(3)
        model, optimizer, step = self.training(make)
        schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.9)
                     for o in (eager_optimizer, optimizer)]
        batches = [torch.randn(5 + i % 3, 4) for i in range(80)]

        def examples():
            for x in batches[1:4]:
                yield (x,)
                for one in schedules:
                    one.step()

        for x in batches[:1]:
            eager_step(x)
            step(x)
        rates = [0.05 * 0.9 ** i for i in range(4)]
        for x, rate in zip(batches[1:4], rates):
            eager_optimizer.param_groups[0]["lr"] = rate
            eager_step(x)
        family = flashlight.trace_family(step, examples(), predicates=predicates,
                                         numbers={"lr": lambda: optimizer.param_groups[0]["lr"]})
        for x in batches[4:]:
            rate = optimizer.param_groups[0]["lr"]
            eager_optimizer.param_groups[0]["lr"] = rate
            self.assertTrue(torch.equal(family(x), eager_step(x)))
            schedules[1].step()
        for ours, theirs in zip(model.parameters(), eager.parameters()):
            self.assertTrue(torch.equal(ours, theirs))
        fast = family.compile("mosaic")
        for i, x in enumerate(batches[-4:]):
            optimizer.param_groups[0]["lr"] = eager_optimizer.param_groups[0]["lr"] = 0.01 / (i + 1)
            torch.testing.assert_close(fast(x), eager_step(x), rtol=1e-4, atol=1e-5)
        self.assertLessEqual(fast.programs, 3)  # sizes, not rates
        for ours, theirs in zip(model.parameters(), eager.parameters()):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_sgd_under_a_schedule_with_clipping(self):
        self.check_training(lambda p: torch.optim.SGD(p, 0.05, momentum=0.9))

    def test_adamw_under_a_schedule(self):
        make = lambda p: torch.optim.AdamW(p, 0.05)
        with self.assertRaisesRegex(flashlight.Error, "examples 1 and 2 read other numbers at"):
            self.check_training(make)
        # The optimizer reads its step count from a tensor, and compares it with nothing.
        self.check_training(make, predicates={f"family_test.py:{self.line}": "any"})


if __name__ == "__main__":
    unittest.main()
