"""Families: what they cannot know is refused, or asked for; a family that answers has the program's bits."""

import unittest

import torch

import flashlight


class PromiseTest(unittest.TestCase):
    """What a family cannot know is refused."""

    def setUp(self):
        torch.manual_seed(3)
        self.enterContext(torch.no_grad())

    def test_changed_programs_are_refused(self):
        def made():
            model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).eval()
            family = flashlight.trace_family(model, [torch.randn(t, 3) for t in (5, 9, 12)])
            return model, family, family.compile()

        x = torch.randn(7, 3)
        for change in (lambda m: setattr(m[0], "weight", torch.nn.Parameter(torch.randn(3, 3))), torch.nn.Module.train):
            model, family, compiled = made()
            self.assertTrue(torch.equal(family(x), model(x)))
            change(model)
            for call in (family, compiled, family.check):
                with self.assertRaisesRegex(flashlight.Error, "since the program was shown"):
                    call(x)
        _, family, compiled = made()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for call in (family, compiled):
                with self.assertRaisesRegex(flashlight.Error, "autocast"):
                    call(x)
        family(x)

    def right_where_it_answers(self, program, family, numbers):
        for t in numbers:
            x = torch.randn(t, 3)
            self.assertTrue(torch.equal(family(x), program(x)), t)

    def test_where_nothing_remains(self):
        def padded(x):
            tokens = x.shape[0]
            if tokens % 7:
                x = torch.cat([torch.ones(7 - tokens % 7, 3), x * 2])
            return x.view(-1, 7, 3).sum(1)

        with self.assertRaisesRegex(flashlight.Error, "is 0 in no example"):
            flashlight.trace_family(padded, [torch.randn(t, 3) for t in (5, 12, 23, 32)])
        family = flashlight.trace_family(padded, lambda t: torch.randn(t, 3), sizes={"t": (2, 64)})
        self.right_where_it_answers(padded, family, range(2, 65))

    def test_between_the_ends_of_a_range(self):
        for program in (lambda x: x.roll(2 if x.shape[0] % 7 == 0 else 1, 0),
                        lambda x: x.sin() if 20 <= x.shape[0] <= 30 else x.cos()):
            try:
                family = flashlight.trace_family(program, lambda t: torch.randn(t, 3), sizes={"t": (2, 64)})
            except flashlight.Error:
                continue
            self.right_where_it_answers(program, family, range(2, 65))

    def test_the_order_of_two_sizes(self):
        def program(x, y):
            return torch.ones(max(x.shape[0], y.shape[0])) * x.sum()

        def inputs(a, b):
            return torch.ones(a, 3), torch.ones(b, 3)

        try:
            family = flashlight.trace_family(program, inputs, sizes={"a": (4, 24), "b": (2, 20)})
        except flashlight.Error:
            return
        for a in range(4, 25, 3):
            for b in range(2, 21, 3):
                self.assertTrue(torch.equal(family(*inputs(a, b)), program(*inputs(a, b))), (a, b))

    def test_what_a_check_refutes_is_refused(self):
        def program(x):
            return x.roll(2 if x.shape[0] == 7 else 1, 0)

        family = flashlight.trace_family(program, [torch.randn(t, 3) for t in (5, 9, 12)])
        compiled, x = family.compile(), torch.randn(7, 3)
        self.assertFalse(family.check(x))
        for call in (family, compiled):
            with self.assertRaisesRegex(flashlight.Error, "a check found another program"):
                call(x)
        self.right_where_it_answers(program, family, (5, 6, 8, 12))

    def test_numbers_of_another_sign(self):
        def program(x, a):
            return x / max(a, 0.1)

        family = flashlight.trace_family(
            program, [((torch.randn(t, 3), a), {}) for t, a in ((5, 2.0), (9, 1.37), (12, 0.21))])
        x = torch.randn(7, 3)
        self.assertTrue(torch.equal(family(x, 0.5), program(x, 0.5)))
        for a in (0.0, -1.0):
            with self.assertRaisesRegex(flashlight.Error, "no example has"):
                family(x, a)
        self.assertTrue(family.check(x, 0.3))
        self.assertFalse(family.check(x, 0.05))

    def test_two_axes_of_one_stride(self):
        def program(x):  # which axis is inside follows from the sizes
            return x.as_strided(x.shape, (1, 1)) * 2

        def written(x):  # the view is a copy where the other axis is inside
            y = program(x)
            y.reshape(-1).add_(torch.arange(y.numel()))
            return y

        sizes = ((8, 4), (12, 6), (15, 9), (11, 5))
        family, writing = (flashlight.trace_family(one, [torch.randn(a, b) for a, b in sizes])
                           for one in (program, written))
        for a in range(8, 16):
            for b in range(4, 10):
                x = torch.randn(a, b)
                self.assertEqual(family(x).stride(), program(x).stride(), (a, b))
                self.assertTrue(torch.equal(family(x), program(x)), (a, b))
                if a >= b:
                    self.assertTrue(torch.equal(writing(x), written(x)), (a, b))
                else:
                    with self.assertRaisesRegex(flashlight.Error, "gives a view in the examples and a copy"):
                        writing(x)

    def test_grids(self):
        for indexing in ("ij", "xy"):
            def program(x, y):
                a, b = torch.meshgrid(x, y, indexing=indexing)
                return a * 2 + b, a, b.reshape(-1)

            family = flashlight.trace_family(program, [(torch.randn(a), torch.randn(b))
                                                       for a, b in ((5, 4), (9, 7), (12, 11))])
            for a, b in ((6, 9), (12, 4), (7, 7)):
                x, y = torch.randn(a), torch.randn(b)
                for received, expected in zip(family(x, y), program(x, y)):
                    self.assertTrue(torch.equal(received, expected), (indexing, a, b))
                    self.assertEqual(received.stride(), expected.stride(), (indexing, a, b))

    def test_a_size_times_a_float(self):
        """Halves and quarters are exact; even examples do not say how the program rounds."""
        for factor in (1.5, 2.5, 0.75):
            program = lambda x, f=factor: torch.nn.functional.interpolate(x, scale_factor=f)
            family = flashlight.trace_family(program, [torch.randn(1, 2, t) for t in (9, 20, 30)])
            for t in (9, 10, 11, 12, 17, 29, 30):
                x = torch.randn(1, 2, t)
                self.assertTrue(torch.equal(family(x), program(x)), (factor, t))
        family = flashlight.trace_family(lambda x: torch.nn.functional.interpolate(x, scale_factor=1.5),
                                         [torch.randn(1, 2, t) for t in (8, 14, 22)])
        self.assertEqual(family(torch.randn(1, 2, 10)).shape[2], 15)
        with self.assertRaisesRegex(flashlight.Error, "add an example between"):
            family(torch.randn(1, 2, 11))

    def test_ranges_need_a_function_of_sizes(self):
        with self.assertRaisesRegex(flashlight.Error, "expected the names of sizes beside examples"):
            flashlight.trace_family(torch.sin, [torch.randn(t, 3) for t in (5, 9, 12)], sizes={"t": (1, 512)})


if __name__ == "__main__":
    unittest.main()
