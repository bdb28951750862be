"""`flashlight`, the command line: the program that stands in the package."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).parent / "bin" / "flashlight"
    os.execv(program, [str(program), *sys.argv[1:]])
