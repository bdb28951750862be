"""The C library in a process that has Flashlight's Python package, which is another copy of the same code: both
load, in either order, and the second that records says so instead of recording half.

    beside_package_test.py [FIRST]        # c or package; without it, both are tried in processes of their own"""

import pathlib
import subprocess
import sys
import tempfile
import unittest


def record_by_c():
    import torch

    import binding

    with binding.Scope({"x": torch.ones(3)}) as scope:
        scope.outputs["y"] = torch.ones(3).relu()


def record_by_package():
    import torch

    import flashlight

    flashlight.trace(torch.nn.ReLU(), torch.ones(3))


class BesidePackageTest(unittest.TestCase):
    def test_the_second_one_is_refused(self):
        """Where one records."""
        for first in "c", "package":
            process = subprocess.run([sys.executable, __file__, first], capture_output=True, text=True)
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertIn("another library has registered a fallback on the dispatch key", process.stdout)

    def test_what_the_package_quantized(self):
        """Files of numbers of 4 bits, with onnxruntime's own operator and without."""
        import torch

        import binding
        import flashlight

        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            captured = flashlight.trace(torch.nn.Linear(64, 32), torch.randn(5, 64))
            small, _ = captured.quantize(backend="reference", measure=False, weights="int4", group=32)
            small.save(folder + "/small")
            loaded = binding.Capture.load(folder + "/small")
            for options in {}, {"matmul_nbits": 1}:
                loaded.export(folder + "/model.onnx", **options)
                text = (pathlib.Path(folder) / "model.onnx").read_bytes()
                self.assertEqual(text.count(b"\x22\x0bMatMulNBits"), len(options))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        unittest.main()
    import binding
    import flashlight

    one, other = (record_by_c, record_by_package) if sys.argv[1] == "c" else (record_by_package, record_by_c)
    one()
    try:
        other()
    except (binding.Error, flashlight.Error) as error:
        print(error)
