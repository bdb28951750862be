"""The C interface from Rust (perceptron.rs), which compares with LibTorch itself. Skipped without rustc."""

import sys
import tempfile

import languages

SKIPPED = 77

if not languages.RUSTC:
    print("skipped: there is no rustc")
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory() as folder:
    languages.run_rust(folder)
