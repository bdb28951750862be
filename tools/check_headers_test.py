"""Plants violations and expects check_headers to name them."""

import tempfile
import unittest
from pathlib import Path

import check_headers


class CheckHeadersTest(unittest.TestCase):
    def check(self, files: dict[str, str], headers: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return list(check_headers.violations(Path(folder), headers))

    def test_accepts_what_is_installed_and_the_system(self):
        files = {"a/x.h": '#include <vector>\n#include "a/y.h"\n', "a/y.h": ""}
        self.assertEqual(self.check(files, {"a/x.h": "public", "a/y.h": "support"}), [])

    def test_accepts_headers_that_cmake_generates(self):
        self.assertEqual(self.check({}, {"a/version.h": "public"}), [])

    def test_included_and_not_installed(self):
        files = {"a/x.h": '#include "a/y.h"\n', "a/y.h": '#  include <a/z.h>\n', "a/z.h": ""}
        found = self.check(files, {"a/x.h": "public", "a/y.h": "support"})
        self.assertEqual(len(found), 1, found)
        self.assertIn("a/y.h is installed and includes a/z.h, which is not", found[0])

    def test_support_that_nobody_needs(self):
        found = self.check({"a/x.h": "", "a/y.h": ""}, {"a/x.h": "public", "a/y.h": "support"})
        self.assertEqual(len(found), 1, found)
        self.assertIn("a/y.h is a support header", found[0])


if __name__ == "__main__":
    unittest.main()
