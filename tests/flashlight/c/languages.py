"""What tests of the C interface share: programs of other languages, and where libraries lie.

CMake names them in the environment: FLASHLIGHT_C_LIBRARY, FLASHLIGHT_TORCH_LIBRARIES (a folder),
FLASHLIGHT_CAPTURE_IN_C (the program)."""

import os
import pathlib
import shutil
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
RUSTC = shutil.which("rustc")
SHAPES = {"x": (4, 3), "y": (4, 2), "loss": (), "fc1.weight": (5, 3), "fc1.bias": (5,),
          "fc2.weight": (2, 5), "fc2.bias": (2,)}


def run_c(folder):
    """capture_in_c, which leaves files in the folder."""
    _run([os.environ["FLASHLIGHT_CAPTURE_IN_C"], folder])


def run_rust(folder):
    """perceptron.rs, compiled into the folder, which gets its files."""
    program = pathlib.Path(folder) / "perceptron"
    ours = pathlib.Path(os.environ["FLASHLIGHT_C_LIBRARY"]).parent
    torchs = os.environ["FLASHLIGHT_TORCH_LIBRARIES"]
    _run([RUSTC, "--edition", "2021", "-O", "-D", "warnings", "-o", program, HERE / "perceptron.rs", "-L", ours,
          "-L", torchs, "-C", f"link-arg=-Wl,-rpath,{torchs}:{ours}", "-C", f"link-arg=-Wl,-rpath-link,{torchs}"])
    _run([program, folder])


def _run(command):
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}:\n{process.stderr}")


def numbers(folder, name):
    """What a program wrote in float32."""
    return np.fromfile(f"{folder}/{name}.bin", np.float32).reshape(SHAPES[name])
