"""Runs a script by the Python of the interchange environment, which has onnx and onnxruntime, and no
torch. Exit status 77, which skips the test, where `./dev interchange` has not made it.

    in_environment.py SCRIPT [ARGUMENTS]
"""

import os
import pathlib
import sys

SKIPPED = 77

python = os.environ["FLASHLIGHT_INTERCHANGE_PYTHON"]
if not pathlib.Path(python).exists():
    print("skipped: ./dev interchange makes what this needs")
    sys.exit(SKIPPED)
os.execv(python, [python, *sys.argv[1:]])
