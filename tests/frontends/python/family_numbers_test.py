"""Numbers among the arguments of a family: which one a call gets, and of which type."""

import pathlib
import tempfile
import unittest

import torch

import flashlight


def scaled(x, by):
    return x * by


def saved(family):
    with tempfile.TemporaryDirectory() as folder:
        family.save(pathlib.Path(folder) / "family")
        return flashlight.load_family(pathlib.Path(folder) / "family")


class NumbersOfCallsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.enterContext(torch.no_grad())
        self.x = torch.randn(7, 3)

    def family(self):
        return flashlight.trace_family(
            scaled, [(torch.randn(rows, 3), by) for rows, by in [(5, 2.0), (9, 1.37), (12, 0.21)]], sizes=["rows"])

    def whole(self):
        return flashlight.trace_family(
            scaled, [(torch.arange(rows), by) for rows, by in [(5, 2), (9, 7), (12, 11)]], sizes=["rows"])

    def assert_takes(self, call, by):
        self.assertTrue(torch.equal(call(self.x, by), self.x * by), by)

    def test_a_bound_capture_takes_the_number_that_is_bound(self):
        captured = self.family().with_numbers(input_1=0.5).at(rows=7)
        compiled = captured.compile("cpp")
        for call in (captured, compiled):
            self.assert_takes(call, 0.5)
            with self.assertRaisesRegex(flashlight.Error, r"expected arguments \(tensor, 0.5\), received"):
                call(self.x, 2.0)  # that of the first example
        self.assertTrue(captured.check(self.x, 0.5))
        with tempfile.TemporaryDirectory() as folder:
            captured.save(pathlib.Path(folder) / "capture")
            loaded = flashlight.load(pathlib.Path(folder) / "capture")
        self.assert_takes(loaded, 0.5)
        with self.assertRaisesRegex(flashlight.Error, r"expected arguments \(tensor, 0.5\), received"):
            loaded(self.x, 2.0)

    def test_a_check_of_a_bound_capture_runs_the_program_with_its_number(self):
        seen = []

        def program(x, by):
            seen.append(by)
            return x * by

        family = flashlight.trace_family(
            program, [(torch.randn(rows, 3), by) for rows, by in [(5, 2.0), (9, 1.37), (12, 0.21)]], sizes=["rows"])
        self.assertTrue(family.with_numbers(input_1=0.5).at(rows=7).check())
        self.assertEqual(seen[-1], 0.5)

    def test_a_call_says_no_other_number_than_with_numbers(self):
        given = self.family().with_numbers(input_1=0.5)
        self.assert_takes(given, 0.5)
        with self.assertRaisesRegex(flashlight.Error, "as it was given for all calls, 0.5, received 1.5"):
            given(self.x, 1.5)

    def test_a_number_keeps_its_type(self):
        family, whole = self.family(), self.whole()
        with self.assertRaisesRegex(flashlight.Error, "expected a float as the number 'input_1'.* the integer 4"):
            family(self.x, 4)
        with self.assertRaisesRegex(flashlight.Error, "expected an integer as the number 'input_1'.* the float 4.0"):
            whole(torch.arange(6), 4.0)
        received = whole(torch.arange(6), 4)
        self.assertEqual(received.dtype, torch.int64)
        self.assertTrue(torch.equal(received, torch.arange(6) * 4))

    def test_integers_that_no_double_is(self):
        with self.assertRaisesRegex(flashlight.Error, "expected an integer below 2.53 .* 9007199254740993"):
            self.whole()(torch.arange(6), 2 ** 53 + 1)
        with self.assertRaisesRegex(flashlight.Error, "expected an integer below 2.53 .* 9007199254740993"):
            flashlight.trace_family(
                scaled, [(torch.arange(rows), by) for rows, by in [(5, 2), (9, 7), (12, 2 ** 53 + 1)]])
        x = torch.arange(6)
        self.assertTrue(torch.equal(self.whole()(x, 2 ** 53 - 1), x * (2 ** 53 - 1)))

    def test_a_number_that_the_program_holds_keeps_its_type(self):
        held = {"by": 0.5}

        def program(x):
            return x * held["by"]

        def examples():
            for rows, by in [(5, 0.5), (9, 1.37), (12, 0.21)]:
                held["by"] = by
                yield torch.arange(rows)

        family = flashlight.trace_family(program, examples(), sizes=["rows"], numbers={"by": lambda: held["by"]})
        held["by"] = 2.0
        self.assertTrue(torch.equal(family(torch.arange(6)), torch.arange(6) * 2.0))
        held["by"] = 2
        with self.assertRaisesRegex(flashlight.Error, "expected a float as the number 'by'.*received an integer, 2"):
            family(torch.arange(6))

    def test_a_loaded_family_takes_other_numbers(self):
        loaded = saved(self.family())
        for call in (loaded, loaded.compile("mosaic")):
            self.assert_takes(call, 0.5)
            self.assert_takes(call, 3.25)
        self.assert_takes(loaded.with_numbers(input_1=0.5).at(rows=7), 0.5)
        with self.assertRaisesRegex(flashlight.Error, "expected a float as the number 'input_1'"):
            loaded(self.x, 4)

    def test_a_plain_capture_tells_types_of_numbers_apart(self):
        captured = flashlight.trace(scaled, torch.arange(5), 1, flashlight.seen_once)
        self.assertTrue(torch.equal(captured(torch.arange(5), 1), torch.arange(5)))
        for other in (1.0, True):
            with self.assertRaisesRegex(flashlight.Error, r"expected arguments \(tensor, 1\)"):
                captured(torch.arange(5), other)
        signed = flashlight.trace(lambda x, by: x / by, torch.ones(5), 0.0, flashlight.seen_once)
        with self.assertRaisesRegex(flashlight.Error, r"received \(tensor, -0.0\)"):
            signed(torch.ones(5), -0.0)

    def test_a_loaded_family_runs_as_far_as_its_sizes_depend_on_values(self):
        def positive(x):
            return x[x[:, 0] > 0] * 2

        family = flashlight.trace_family(positive, [torch.randn(rows, 3) for rows in (8, 13, 21, 34)], sizes=["rows"])
        loaded = saved(family)
        for rows in (9, 17, 30):
            x = torch.randn(rows, 3)
            self.assertTrue(torch.equal(loaded(x), positive(x)), rows)

    def test_a_number_of_an_operator_without_tensors(self):
        numbers = [(5, 0.5), (9, 0.37), (12, 0.21)]
        filled = flashlight.trace_family(lambda x, a: torch.full((x.shape[0],), a) + x[:, 0],
                                         [(torch.randn(rows, 3), a) for rows, a in numbers]).compile("mosaic")
        for a in (0.3, 2.5):
            self.assertTrue(torch.equal(filled(self.x, a), a + self.x[:, 0]))
        for program in (lambda x, a: torch.linspace(0, a, x.shape[0]) + x[:, 0], torch.quantile,
                        lambda x, a: torch.arange(0, 1, a).sum() + x):
            family = flashlight.trace_family(program, [(torch.randn(rows, 3), a) for rows, a in numbers])
            with self.assertRaisesRegex(flashlight.Error, "differs from call to call, and no tensor can stand"):
                family.compile("mosaic")(self.x, 0.3)

    def test_half_precision_rounds_a_number_as_eager_does(self):
        def program(x, a):
            y = x.flip(0)
            return {"mul": x * a, "div": x / a, "add": x + a, "sub": x - a, "alpha": torch.add(x, y, alpha=a),
                    "lerp": x.lerp(y, a), "addcmul": torch.addcmul(x, y, x, value=a), "full": torch.full_like(x, a)}

        for dtype in (torch.bfloat16, torch.float16):
            family = flashlight.trace_family(
                program, [(torch.randn(rows, 3).to(dtype), a) for rows, a in [(51, 2.0), (90, 1.37), (121, 0.21)]])
            for compiled in (family.compile("cpp"), family.compile("mosaic")):
                x = torch.randn(64, 3).to(dtype)  # no rest behind eager's vectors
                for a in (0.3, 0.123457, 1.9):
                    received, expected = compiled(x, a), program(x, a)
                    for name, value in expected.items():
                        wrong = (received[name] != value).sum().item()
                        few = 3 if name == "alpha" else 0  # eager's rounds in one step or in two
                        self.assertLessEqual(wrong, few, (name, dtype, a))


if __name__ == "__main__":
    unittest.main()
