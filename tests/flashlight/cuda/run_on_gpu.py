"""Runs what the cuda backend writes on a GPU: values against LibTorch's there, and times beside
eager, CUDA graphs and torch.compile.

    run_on_gpu.py FLASHLIGHT

FLASHLIGHT is the command line. Skipped (exit code 77) without a GPU that torch sees, or without nvcc."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils.cpp_extension import load

import flashlight

BINDING = """#include <torch/extension.h>
#include "program.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("program", &program); }
"""
CALLS = 50


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
            for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


def built(command: str, model: torch.nn.Module, x: torch.Tensor, folder: pathlib.Path):
    """The program for the loss, as a function of LibTorch's tensors, and the names of its inputs."""
    captured = flashlight.trace(model, x, flashlight.confirm(torch.randn_like(x)))
    captured.save(folder / "model")
    subprocess.run([command, "compile", str(folder / "model"), "--backend", "cuda", "--link", "aten",
                    "--name", "program", "-o", str(folder / "cuda")], check=True)
    (folder / "cuda/binding.cpp").write_text(BINDING)
    module = load("flashlight_program", [str(folder / "cuda/program.cu"),
                                         str(folder / "cuda/binding.cpp")],
                  extra_include_paths=[str(folder / "cuda")],
                  extra_cflags=["-std=c++20"], extra_cuda_cflags=["-std=c++20"])
    header = (folder / "cuda/program.h").read_text()
    return module.program, re.findall(r"^//   (\S+): ", header, re.MULTILINE)


def seconds(function) -> float:
    for _ in range(5):
        function()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(CALLS):
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def graphed(function):
    """The function's launches in a CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def main(command: str) -> int:
    if not torch.cuda.is_available() or shutil.which("nvcc") is None:
        print("skipped: there is no GPU that torch sees, or no nvcc")
        return 77
    torch.manual_seed(0)
    model, x = Encoder().train(), torch.randn(2, 128, 256)
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        program, names = built(command, model, x, pathlib.Path(name))
        on_gpu = model.to("cuda")
        named = dict(on_gpu.named_parameters())
        x = torch.randn(2, 128, 256, device="cuda")
        inputs = [named.get(one, x) for one in names]
        ours, expected = program(inputs)[0], on_gpu(x)
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
        fused = torch.compile(on_gpu)
        for what, function in {"eager": lambda: on_gpu(x), "torch.compile": lambda: fused(x),
                               "ours": lambda: program(inputs),
                               "eager in a CUDA graph": graphed(lambda: on_gpu(x)),
                               "ours in a CUDA graph": graphed(lambda: program(inputs))}.items():
            print(f"{what}: {1e6 * seconds(function):.0f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
