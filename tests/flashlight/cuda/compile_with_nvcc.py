"""Compiles what the cuda backend writes with nvcc, to cubins; prints registers and fails on spills.

    compile_with_nvcc.py FLASHLIGHT EXAMPLES CORPUS [--models MODELS] [--torch FOLDER ...]

FLASHLIGHT is the command line, EXAMPLES the folder of examples: programs in Knossos' language and
generated ones. CORPUS writes ADBench's objectives and random programs (write_corpus.cpp): 20 of
these, or FLASHLIGHT_FUZZ_PROGRAMS / 500. With LibTorch's include folders, programs that call LibTorch
are compiled, too: by its own headers, of a build for the CPU as well. MODELS writes those of
models with their gradients (write_models.cpp): of FEW_MODELS, or with that variable of all, which
are minutes of nvcc. Nothing is linked or run.

nvcc is that of FLASHLIGHT_NVCC, or of the path; without one the test is skipped (exit code 77).
requirements.txt beside this file has the packages of one, for ./dev nvcc."""

import argparse
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

FEW_MODELS = ["resnet_training", "bert"]

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


def plain_name(symbol: str) -> str:
    """A mangled name's namespaces and name, without the parameters: _ZN3lstm6kernelEPKf."""
    words, rest = [], symbol.removeprefix("_ZN")
    while found := re.match(r"\d+", rest):
        end = found.end() + int(found[0])
        words.append(rest[found.end():end])
        rest = rest[end:]
    return "::".join(word for word in words if not word.startswith("_GLOBAL__")) or symbol


class Report:
    """Registers and spills of all kernels."""

    def __init__(self):
        self.kernels = []  # (registers, spilled bytes, program: kernel)

    def add(self, program: str, said: str) -> None:
        parts = re.split(r"Compiling entry function '(\w+)'", said)[1:]
        kernels = []
        for symbol, text in zip(parts[::2], parts[1::2]):
            registers = re.search(r"Used (\d+) registers", text)
            spilled = sum(map(int, re.findall(r"(\d+) bytes spill", text)))
            kernels.append((int(registers[1]), spilled, f"{program}: {plain_name(symbol)}"))
        print(f"{program}: {len(kernels)} kernels, at most {max(k[0] for k in kernels)} registers, "
              f"{sum(k[1] for k in kernels)} bytes spilled", flush=True)
        self.kernels += kernels

    def end(self) -> int:
        """Prints the worst; the exit code."""
        print(f"{len(self.kernels)} kernels in all; most registers:")
        for registers, _, name in sorted(self.kernels, reverse=True)[:5]:
            print(f"  {registers}  {name}")
        spills = [kernel for kernel in self.kernels if kernel[1]]
        for _, spilled, name in spills:
            print(f"spills {spilled} bytes: {name}")
        return 1 if spills else 0


class Compiler:
    """nvcc, with a folder for what it makes."""

    def __init__(self, nvcc: str, folder: pathlib.Path, torch_folders: list[str]):
        self.nvcc, self.folder, self.report = nvcc, folder, Report()
        self.linked = (["-std=c++20", *includes(folder, torch_folders)] if torch_folders else None)

    def compile(self, name: str, source: pathlib.Path, flags: list[str]) -> None:
        done = subprocess.run([self.nvcc, "-arch=sm_80", "-cubin", "-Xptxas", "-v", "-o",
                               str(self.folder / "cubin"), str(source), *flags],
                              capture_output=True, text=True)
        if done.returncode:
            print(done.stdout, done.stderr)
            sys.exit(f"nvcc does not compile {name}")
        self.report.add(name, done.stderr)

    def imported(self, flashlight: str, name: str, file: pathlib.Path, function: str,
                 inputs: list[str]) -> None:
        """A function of a file, plain and with LibTorch."""
        words = [word for one in inputs for word in ("--input", one)]
        subprocess.run([flashlight, "import", str(file), "--function", function, *words, "-o",
                        str(self.folder / name)], check=True, stdout=subprocess.DEVNULL)
        kinds = {"": PLAIN}
        if self.linked:
            kinds[" with LibTorch"] = self.linked
        for kind, flags in kinds.items():
            target = self.folder / f"{name}{kind.replace(' ', '_')}_cuda"
            written(flashlight, self.folder / name, target, bool(kind))
            self.compile(name + kind, target / "program.cu", flags)

    def generated(self, source: pathlib.Path, headers: pathlib.Path) -> None:
        """A text of examples/generated, whose header is the one function that it has."""
        calls_libtorch = "flashlight_cuda_aten.cuh" in source.read_text()
        if calls_libtorch and not self.linked:
            print(f"{source.name}: not compiled, it needs LibTorch's headers")
            return
        own = self.folder / f"{source.stem}.h"
        if calls_libtorch:
            own.write_text("#pragma once\n#include <ATen/core/Tensor.h>\n#include <functional>\n"
                           "#include <vector>\n")
        self.compile(source.name, source, [*(self.linked if calls_libtorch else PLAIN),
                                           f"-I{headers}", f"-I{self.folder}"])


def write_corpus(corpus: str, models: str | None, folder: pathlib.Path) -> None:
    runs = os.environ.get("FLASHLIGHT_FUZZ_PROGRAMS")
    subprocess.run([corpus, str(folder), str(max(int(runs) // 500, 1) if runs else 20)], check=True)
    if models:
        subprocess.run([models, str(folder), *([] if runs else FEW_MODELS)], check=True,
                       stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("flashlight", "examples", "corpus"):
        parser.add_argument(name)
    parser.add_argument("--models")
    parser.add_argument("--torch", nargs="*", default=[])
    words = parser.parse_args()
    nvcc = os.environ.get("FLASHLIGHT_NVCC") or shutil.which("nvcc")
    if not nvcc:
        print("skipped: there is no nvcc")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compiler = Compiler(nvcc, folder, words.torch)
        sources = folder / "sources"
        sources.mkdir()
        write_corpus(words.corpus, words.models, sources)
        for source in sorted(sources.glob("*.cu")):
            is_linked = source.stem == "models"
            compiler.compile(source.stem, source, compiler.linked if is_linked else PLAIN)
        for source in sorted(pathlib.Path(words.examples).glob("generated/*.cu")):
            compiler.generated(source, sources)
        programs = {name: (pathlib.Path(words.examples) / "ks" / file, *rest)
                    for name, (file, *rest) in PROGRAMS.items()}
        if words.torch:  # TorchScript needs LibTorch
            (folder / "complex.py").write_text(COMPLEX)
            for dtype in ("complex64", "complex128"):
                programs[dtype] = (folder / "complex.py", "turn", [f"{dtype}[30,3000]"] * 2)
        for program, (file, function, inputs) in programs.items():
            compiler.imported(words.flashlight, program, file, function, inputs)
        return compiler.report.end()


if __name__ == "__main__":
    sys.exit(main())
