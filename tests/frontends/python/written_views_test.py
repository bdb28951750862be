"""Writes through views, evaluated where there is no memory: graphs have the values of the program, whatever
the order in which its tensors lie."""

import random
import unittest

import no_looks  # before flashlight
import torch

import flashlight


def program_text(rand):
    """A program that writes through views of a tensor made in some order of its axes."""
    lines, names = [f"    z = x.permute({order(rand)}) * 1"], ["z"]
    for i in range(rand.randrange(1, 6)):
        name = f"v{i}"
        lines.append(f"    {name} = {rand.choice(names)}{view(rand)}")
        names.append(name)
        if rand.random() < 0.3:  # Python assigns what it made of the view to the view
            lines.append(f"    {rand.choice(names)}[{rand.choice(('1:', '..., :2', '...'))}] {rand.choice('+*')}= 2")
        if rand.random() < 0.7:
            lines.append(f"    {rand.choice(names)}{rand.choice(('.mul_(2)', '.add_(0.5)', '.fill_(3)'))}")
    return "def program(x):\n" + "\n".join(lines) + f"\n    return z, {rand.choice(names)} * 1, z.sum(0)\n"


def order(rand):
    return ", ".join(map(str, rand.sample(range(3), 3)))


def view(rand):
    return rand.choice((
        f".permute({order(rand)})", ".transpose(0, 2)", "[1:]", "[:, ::2]", ".flip(0).flip(0)",
        ".as_strided((2, 3, 2), (1, 2, 6), 1)", ".as_strided((2, 1, 2), (1, 5, 4))", ".narrow(2, 0, 2)"))  # fmt: skip


class WrittenViewsTest(unittest.TestCase):
    def agrees(self, program, x, text=""):
        expected = program(x.clone())
        captured = flashlight.trace(program, x.clone())
        received = captured.evaluate(x.clone())
        for ours, theirs in zip(received, expected, strict=True):
            self.assertTrue(torch.equal(ours, theirs), text)
        for ours, theirs in zip(captured(x.clone()), expected, strict=True):
            self.assertTrue(torch.equal(ours, theirs), text)
        return captured

    def test_a_whole_tensor_by_its_transpose(self):
        def program(x):
            z = x * 1
            z.t().add_(x.t())
            return z, z.t()

        x = torch.arange(6.0).reshape(2, 3)
        captured = self.agrees(program, x)
        for backend in ("cpp", "mosaic"):
            received = captured.compile(backend, flags=["-O1"])(x)
            self.assertTrue(torch.equal(received[0], 2 * x))

    def test_a_part_of_what_lies_in_another_order(self):
        def program(x):
            z = x.t() * 1
            z.as_strided((2,), (1,), 1).mul_(2)
            return z, z.as_strided((2, 2), (1, 2), 1) + 0

        self.agrees(program, torch.arange(6.0).reshape(2, 3))

    def test_a_slice_of_itself(self):
        def program(x):
            y = x * 1
            y[1:] *= 2
            y[:, 0] += y[:, 0]
            return y, y.t() * 1

        x = torch.randn(3, 3)
        captured = self.agrees(program, x)
        for backend in ("cpp", "aten"):
            received = captured.compile(backend, **({"flags": ["-O1"]} if backend == "cpp" else {}))(x)
            self.assertTrue(torch.equal(received[0], program(x)[0]))

    def test_random_programs(self):
        ran = 0
        for seed in range(150):
            text = program_text(random.Random(seed))
            scope = {}
            exec(text, scope)
            x = torch.arange(60.0).reshape(3, 4, 5)
            try:
                scope["program"](x.clone())
            except (RuntimeError, IndexError):
                continue  # no such view of that one
            ran += 1
            with self.subTest(text):
                self.agrees(scope["program"], x, text)
        self.assertGreater(ran, 60)


if __name__ == "__main__":
    unittest.main()
