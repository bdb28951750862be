"""Backends by their names, and one of a shared library (tests/install/consumer/stack)."""

import os
import subprocess
import sys
import unittest

import numpy as np
import torch

import composit
import composit.numpy as cnp
import flashlight
import no_looks

PLUGIN = os.environ["FLASHLIGHT_STACK_PLUGIN"]


def program(x, y):
    return (x * y).sin() + x


def doubles():
    return torch.randn(3, 4, dtype=torch.float64, requires_grad=True)


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert flashlight.load_plugin(PLUGIN) == "stack"
        cls.x, cls.y = doubles(), doubles()
        cls.captured = flashlight.trace(program, cls.x, cls.y)

    def refused(self, message, action):
        with self.assertRaises(flashlight.Error) as raised:
            action()
        self.assertIn(message, str(raised.exception))

    def test_compiles_a_capture(self):
        compiled = self.captured.compile("stack", comment="from Python", depth=8, scale=1, finite=True)
        x, y = doubles(), doubles()
        torch.testing.assert_close(compiled(x, y), program(x, y))
        self.assertEqual(compiled.source(), "# from Python\ninput_0 input_1 mul sin input_0 add\n")
        self.assertEqual(self.captured.source("stack", comment="from Python"), compiled.source())
        self.assertIn("stack", compiled.profile(x, y))
        ours = torch.autograd.grad(compiled(x, y).sum(), (x, y))
        torch.testing.assert_close(ours, torch.autograd.grad(program(x, y).sum(), (x, y)))

    def test_evaluates_arrays(self):
        x, y = cnp.asarray(np.array([0.5, -1, 2])), cnp.asarray(np.array([3, 0.25, 1]))
        values = composit.evaluate(cnp.sin(x * y) + x, backend="stack")
        a, b = composit.evaluate(x, y)
        np.testing.assert_allclose(values, np.sin(a * b) + a)

    def test_is_listed_with_its_options(self):
        options = flashlight.backends()["stack"]["options"]
        self.assertEqual(options["depth"], "how many values the stack holds (an integer; 64)")
        self.assertEqual(list(options), ["finite", "depth", "scale", "comment"])
        self.assertIn("threads", flashlight.backends()["mosaic"]["options"])

    def test_options_are_checked(self):
        compile = self.captured.compile
        self.refused("[stack] option 'depth': expected an integer, received 'deep'",
                     lambda: compile("stack", depth="deep"))
        self.refused("[stack] option 'comment': expected text, received ['a', 'list']",
                     lambda: compile("stack", comment=["a", "list"]))
        self.refused("[mosaic] option 'threads': expected an integer, received 2.5",
                     lambda: compile("mosaic", threads=2.5))
        self.refused("[mosaic] option 'threads': expected an integer, received 1180591620717411303424",
                     lambda: compile("mosaic", threads=2 ** 70))
        self.refused("[mosaic] option 'winograd': expected true or false, received 1",
                     lambda: compile("mosaic", winograd=1))
        for use in (lambda: compile("stack", threads=2), lambda: self.captured.source("stack", threads=2)):
            self.refused("expected one of the options finite, depth, scale, comment, received 'threads'", use)
        for use in (lambda: compile("gpu"), lambda: self.captured.source("gpu")):
            self.refused("[backend] expected one of aten, cpp, cuda, devices, mosaic, pjrt, reference, stack, xla, "
                         "received 'gpu'", use)  # fmt: skip

    def test_other_files_are_refused(self):
        self.refused("expected a library with COMPOSIT_BACKEND_PLUGIN", lambda: flashlight.load_plugin(__file__))

    def test_is_loaded_by_the_environment(self):
        words = "import composit; print(composit.backends()['stack']['help'])"
        output = subprocess.run([sys.executable, "-c", words], check=True, text=True, stdout=subprocess.PIPE,
                                env={**os.environ, "FLASHLIGHT_PLUGINS": PLUGIN}).stdout
        self.assertEqual(output, "programs for a stack machine\n")


if __name__ == "__main__":
    no_looks.main()
