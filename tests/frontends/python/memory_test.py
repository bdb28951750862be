"""Captures leave nothing behind."""

import gc
import os
import pathlib
import unittest
import warnings
import weakref

import no_looks  # before flashlight
import torch

import flashlight


def resident_bytes():
    fields = pathlib.Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


class Memory(unittest.TestCase):
    def test_flat_over_a_thousand_captures(self):
        """Of a model with 1 MB of weights, a MB of arguments, and one that raises at times."""
        model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU())
        x = torch.randn(512, 512)

        def raising(x):
            model(x)
            raise ValueError

        def once(i):
            captured = flashlight.trace(model, x)
            if i % 50 == 0:
                captured(x)
                captured.check(x)
                captured.assumptions()
                with self.assertRaises(ValueError):
                    flashlight.trace(raising, x)

        def tensors():
            gc.collect()
            with warnings.catch_warnings():  # of what it looks at
                warnings.simplefilter("ignore")
                return sum(1 for o in gc.get_objects() if isinstance(o, torch.Tensor))

        for i in range(100):
            once(i)
        bytes_before, tensors_before = resident_bytes(), tensors()
        for i in range(1000):
            once(i)
        self.assertEqual(tensors(), tensors_before)
        # One kept argument, or one kept set of weights, per capture would be 1000 MB.
        self.assertLess(resident_bytes() - bytes_before, 30e6)

    def test_released_weights_are_in_memory_packed_alone(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        x = torch.randn(4, 64)
        expected = model(x).detach()
        captured = flashlight.trace(model, x)
        compiled = captured.compile("mosaic")
        self.assertEqual({name for name, _ in compiled.named_parameters()},
                         {name for name, _ in model.named_parameters()})
        weights = [weakref.ref(model[i].weight) for i in (0, 2)]
        compiled.release()
        self.assertEqual(list(compiled.named_parameters()), [])
        del model, captured
        gc.collect()
        self.assertNotIn(None, [weight() for weight in weights])  # nothing is packed yet
        torch.testing.assert_close(compiled(x), expected)
        self.assertEqual([weight() for weight in weights], [None, None])
        torch.testing.assert_close(compiled(x), expected)

    def test_a_capture_held_by_its_model_is_collected(self):
        model = torch.nn.Linear(3, 2)
        model.held = flashlight.trace(model, torch.randn(4, 3))
        died = []
        weakref.finalize(model, died.append, True)
        del model
        gc.collect()
        self.assertEqual(died, [True])


if __name__ == "__main__":
    no_looks.main()
