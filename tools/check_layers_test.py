"""Plants one violation of each kind and expects check_layers to report its place and reason."""

import tempfile
import unittest
from pathlib import Path

import check_layers


class CheckLayersTest(unittest.TestCase):
    def check(self, path: str, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            return list(check_layers.violations(Path(folder)))

    def expect(self, path: str, text: str, place: str, reason: str) -> None:
        found = self.check(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:{place}: "), found[0])
        self.assertIn(reason, found[0])

    def test_accepts_own_folder_lower_layers_and_the_system(self):
        text = '#include <vector>\n#include "composit/ir/node.h"\n#include "composit/io/save.h"\n'
        self.assertEqual(self.check("composit/io/save.cpp", text), [])

    def test_accepts_libtorch_in_the_tracer(self):
        self.assertEqual(self.check("tracer/scope.cpp", "#include <ATen/core/Tensor.h>\n"), [])

    def test_upward(self):
        text = '#pragma once\n\n#include "composit/io/save.h"\n'
        self.expect("composit/ir/node.h", text, "3", "must not depend on composit/io")

    def test_upward_in_angle_brackets(self):
        text = "#include <flashlight/trace.h>\n"
        self.expect("tracer/scope.h", text, "1", "must not depend on flashlight")

    def test_sideways(self):
        text = '#include "benchmarks/timing.h"\n'
        self.expect("tests/ir/node_test.cpp", text, "1", "must not depend on benchmarks")

    def test_libtorch_in_composit(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/core/ScalarType.h"):
            text = f"#include <string>\n#  include <{header}>\n"
            self.expect("composit/io/array.cpp", text, "2", "free of it")

    def test_libtorch_in_the_runtime(self):
        text = "#include <ATen/core/Tensor.h>\n"
        self.expect("flashlight/runtime/lanes.hpp", text, "1", "free of it")
        self.assertEqual(self.check("flashlight/runtime/aten.hpp", text), [])

    def test_flashlight_in_models(self):
        for header in ("flashlight/trace.h", "composit/ir/node.h", "tracer/scope.h"):
            text = f'#include "{header}"\n'
            self.expect("examples/models/bert.cpp", text, "1", "examples/models must not")

    def test_relative_path(self):
        self.expect("composit/ir/node.cpp", '#include "node.h"\n', "1", "not a path from the")

    def test_source_file_included(self):
        self.expect("tests/ir/a.cpp", '#include "composit/ir/node.cpp"\n', "1", "no file may")

    def test_folder_in_no_layer(self):
        self.expect("composit/misc/a.h", "#pragma once\n", "1", "lies in no layer")

    def test_length(self):
        self.assertEqual(self.check("tools/a.py", "\n" * 500), [])
        self.expect("tools/a.py", "\n" * 501, "501", "has 501 lines")

    def test_columns_of_python(self):
        self.assertEqual(self.check("tools/a.py", "\n" + "#" * 120 + "\n"), [])
        self.expect("tools/a.py", "\n" + "#" * 121 + "\n", "2", "has 121 columns")


if __name__ == "__main__":
    unittest.main()
