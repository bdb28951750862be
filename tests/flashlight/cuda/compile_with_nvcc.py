"""Compiles what the cuda backend writes with nvcc, to a cubin; prints registers and fails on spills.

    compile_with_nvcc.py FLASHLIGHT EXAMPLES [TORCH_FOLDER ...]

FLASHLIGHT is the command line, EXAMPLES the folder of examples: programs in Knossos' language and
generated ones. With LibTorch's include folders, programs that call LibTorch are compiled, too. nvcc
is that of FLASHLIGHT_NVCC, or of the path; without one the test is skipped (exit code 77).
NVIDIA's packages nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt, nvidia-cuda-runtime and, for
LibTorch's headers, nvidia-cuda-cccl have it."""

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

COMPLEX = """
def turn(z: Tensor, w: Tensor) -> Tensor:
    y = torch.exp(z * w) / (torch.sqrt(torch.conj(z)) + torch.tanh(w) + torch.asin(z) + torch.pow(z, w))
    return torch.abs(torch.sum(y, 1)) + torch.real(torch.sum(y))
"""

PLAIN = ["-std=c++17", "-Werror", "all-warnings"]


def written(flashlight: str, capture: pathlib.Path, target: pathlib.Path, linked: bool) -> None:
    words = ["--graph", *(["--link", "aten"] if linked else [])]
    subprocess.run([flashlight, "compile", str(capture), "--backend", "cuda", "-o", str(target),
                    "--name", "program", *words], check=True, stdout=subprocess.DEVNULL)


def includes(folder: pathlib.Path, torch_folders: list[str]) -> list[str]:
    """LibTorch's folders; a build of it for the CPU lacks a header that says how it was built."""
    macros = folder / "macros/c10/cuda/impl/cuda_cmake_macros.h"
    macros.parent.mkdir(parents=True, exist_ok=True)
    macros.write_text("#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n")
    return [f"-I{one}" for one in (*torch_folders, folder / "macros")]


def compile_folder(nvcc: str, folder: pathlib.Path, words: list[str]) -> str | None:
    """What ptxas says; nothing after an error, which is printed."""
    done = subprocess.run([nvcc, "-arch=sm_80", "-cubin", "-Xptxas", "-v", "-o",
                           str(folder / "program.cubin"), str(folder / "program.cu"), *words],
                          capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr)
        return None
    return done.stderr


def report(name: str, said: str) -> int:
    """Prints registers; the bytes that are spilled."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill", said)))
    print(f"{name}: {len(registers)} kernels, at most {max(registers)} registers, {spilled} bytes "
          "spilled")
    return spilled


def main(flashlight: str, examples: str, *torch_folders: str) -> int:
    nvcc = os.environ.get("FLASHLIGHT_NVCC") or shutil.which("nvcc")
    if not nvcc:
        print("skipped: there is no nvcc")
        return 77
    spills = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        programs = {name: (pathlib.Path(examples) / "ks" / file, *rest)
                    for name, (file, *rest) in PROGRAMS.items()}
        if torch_folders:  # TorchScript needs LibTorch
            (folder / "complex.py").write_text(COMPLEX)
            for dtype in ("complex64", "complex128"):
                programs[dtype] = (folder / "complex.py", "turn", [f"{dtype}[30,3000]"] * 2)
        for program, (file, function, inputs) in programs.items():
            words = [word for one in inputs for word in ("--input", one)]
            subprocess.run([flashlight, "import", str(file), "--function",
                            function, *words, "-o", str(folder / program)], check=True)
            kinds = {"": PLAIN}
            if torch_folders:
                kinds[" with LibTorch"] = ["-std=c++20", *includes(folder, list(torch_folders))]
            for kind, flags in kinds.items():
                target = folder / f"{program}{kind.replace(' ', '_')}_cuda"
                written(flashlight, folder / program, target, bool(kind))
                said = compile_folder(nvcc, target, flags)
                if said is None:
                    return 1
                spills += report(f"{program}{kind}", said)
        shutil.copy(folder / "relu3_cuda/flashlight_cuda.cuh", folder)
        for source in sorted(pathlib.Path(examples).glob("generated/*.cu")):
            if "flashlight_cuda_aten.cuh" in source.read_text():
                continue
            target = folder / "generated"
            target.mkdir(exist_ok=True)
            shutil.copy(source, target / "program.cu")
            said = compile_folder(nvcc, target, [*PLAIN, f"-I{folder}"])
            if said is None:
                return 1
            spills += report(source.name, said)
    return 1 if spills else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
