"""Compiles what the cuda backend writes with nvcc, to a cubin; prints registers and fails on spills.

    compile_with_nvcc.py FLASHLIGHT EXAMPLES HEADER_FOLDER

FLASHLIGHT is the command line, EXAMPLES the folder of programs in Knossos' language. nvcc is that of
FLASHLIGHT_NVCC, or of the path; without one the test is skipped (exit code 77). NVIDIA's packages
nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt and nvidia-cuda-runtime have it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = {
    "relu3": ("relu3.ks", "relu3", ["float32[]"]),
    "relu3_slope": ("relu3.ks", "[rev relu3]", ["float32[]", "float32[]"]),
    "gmm": ("gmm.ks", "gmm", ["float32[200]", "float32[200,64]", "float32[200,2080]",
                              "float32[1000,64]", "float32[]", "2"]),
    "gmm_gradient": ("gmm.ks", "[rev gmm]", ["float64[5]", "float64[5,3]", "float64[5,6]",
                                             "float64[100,3]", "float64[]", "2", "float64[]"]),
}


def main(flashlight: str, examples: str, headers: str) -> int:
    nvcc = os.environ.get("FLASHLIGHT_NVCC") or shutil.which("nvcc")
    if not nvcc:
        print("skipped: there is no nvcc")
        return 77
    spills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(pathlib.Path(headers) / "cuda.cuh", folder / "flashlight_cuda.cuh")
        for program, (file, function, inputs) in PROGRAMS.items():
            words = [word for one in inputs for word in ("--input", one)]
            subprocess.run([flashlight, "import", str(pathlib.Path(examples) / file), "--function",
                            function, *words, "-o", str(folder / program)], check=True)
            text = subprocess.run([flashlight, "emit", str(folder / program), "--backend", "cuda"],
                                  check=True, capture_output=True, text=True).stdout
            (folder / f"{program}.cu").write_text(text)
            done = subprocess.run([nvcc, "-std=c++17", "-arch=sm_80", "-cubin", "-Xptxas", "-v",
                                   "-Werror", "all-warnings", "-o", str(folder / f"{program}.cubin"),
                                   str(folder / f"{program}.cu")], capture_output=True, text=True)
            if done.returncode:
                print(done.stdout, done.stderr)
                return 1
            registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
            spilled = sum(map(int, re.findall(r"(\d+) bytes spill", done.stderr)))
            print(f"{program}: {len(registers)} kernels, at most {max(registers)} registers, "
                  f"{spilled} bytes spilled")
            spills += spilled
    return 1 if spills else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
