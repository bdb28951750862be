"""Runs what the cuda backend writes on a GPU: values, gradients and training steps against LibTorch's
there, a program without LibTorch by its C header, and times beside eager, CUDA graphs and torch.compile.

    run_on_gpu.py FLASHLIGHT

FLASHLIGHT is the command line. Skipped (exit code 77) without a GPU that torch sees, or without nvcc."""

import ctypes
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
#include "NAME.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("program", &NAME); }
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


def folder_of(command: str, captured, folder: pathlib.Path, words: list[str]) -> pathlib.Path:
    """The program as a folder; its function has the folder's name."""
    captured.save(folder.parent / f"{folder.name}_capture")
    subprocess.run([command, "compile", str(folder.parent / f"{folder.name}_capture"), "--backend", "cuda",
                    "--name", folder.name, "-o", str(folder), *words], check=True)
    return folder


def built(command: str, captured, folder: pathlib.Path, words: tuple[str, ...] = ()):
    """The program as a function of LibTorch's tensors, and the names of its inputs."""
    name = folder.name
    folder_of(command, captured, folder, ["--link", "aten", *words])
    (folder / "binding.cpp").write_text(BINDING.replace("NAME", name))
    module = load(f"flashlight_{name}", [str(folder / f"{name}.cu"), str(folder / "binding.cpp")],
                  extra_include_paths=[str(folder)],
                  extra_cflags=["-std=c++20"], extra_cuda_cflags=["-std=c++20"])
    header = (folder / f"{name}.h").read_text()
    return module.program, re.findall(r"^//   (\S+): ", header, re.MULTILINE)


def check_gradient(command: str, folder: pathlib.Path) -> None:
    """A loss and its gradient by all parameters against autograd's."""
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))
    x = torch.randn(8, 20)

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x).square().mean()

    loss = Loss()
    names = [name for name, _ in loss.named_parameters()]
    program, inputs = built(command, flashlight.trace(loss, x, flashlight.confirm(torch.randn_like(x))),
                            folder, ("--grad", *names))
    loss, x = loss.to("cuda"), torch.randn(8, 20, device="cuda")
    named = dict(loss.named_parameters())
    results = program([named[one].detach() if one in named else x for one in inputs])
    expected = loss(x)
    gradients = torch.autograd.grad(expected, [named[name] for name in names])
    torch.testing.assert_close(results, [expected.detach(), *gradients], rtol=1e-4, atol=1e-5)


def step(weight, velocity, x, target):
    """SGD with momentum, which writes the weight and its velocity."""
    leaf = weight.detach().clone().requires_grad_()
    loss = torch.nn.functional.mse_loss(torch.tanh(x @ leaf), target)
    loss.backward()
    with torch.no_grad():
        velocity.mul_(0.9).add_(leaf.grad)
        weight.add_(velocity, alpha=-0.1)
    return loss.detach()


def arguments(device: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    sizes = ((20, 5), (20, 5), (8, 20), (8, 5))
    return [torch.randn(size, generator=generator).to(device) for size in sizes]


def check_steps(command: str, folder: pathlib.Path) -> None:
    """Two steps write the weight and its velocity as LibTorch does."""
    program, _ = built(command, flashlight.trace(step, *arguments("cpu")), folder)  # inputs in this order
    ours, theirs = arguments("cuda"), arguments("cuda")
    for _ in range(2):
        loss = program(ours)[0]
        torch.testing.assert_close(loss, step(*theirs), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def check_plain(command: str, folder: pathlib.Path) -> None:
    """A program without LibTorch: a shared library that is called by its C header."""
    def function(x):
        return torch.softmax(torch.exp(x), 1) * 2

    x = torch.randn(64, 300)
    name = folder.name
    folder_of(command, flashlight.trace(function, x), folder, [])
    library = folder / f"lib{name}.so"
    major, minor = torch.cuda.get_device_capability()
    subprocess.run(["nvcc", "-shared", "-Xcompiler", "-fPIC", "-std=c++17",
                    f"-arch=sm_{major}{minor}", "-o", str(library), str(folder / f"{name}.cu")], check=True)
    bytes_of_arena = int(re.search(r"_arena_bytes = (\d+)", (folder / f"{name}.h").read_text())[1])
    x = x.to("cuda")
    y = torch.empty_like(x)
    arena = torch.empty(max(bytes_of_arena, 1), dtype=torch.uint8, device="cuda")
    call = getattr(ctypes.CDLL(str(library)), name)
    call.argtypes = [ctypes.c_void_p] * 4
    error = call(x.data_ptr(), y.data_ptr(), arena.data_ptr(), torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    assert error == 0, f"CUDA's error {error}"
    torch.testing.assert_close(y, function(x), rtol=1e-4, atol=1e-6)


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
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_plain(command, folder / "plain")
        check_gradient(command, folder / "gradient")
        check_steps(command, folder / "step")
        print("values by a C header, gradients and training steps agree")
        measure(command, model, x, folder / "encoder")
    return 0


def measure(command: str, model: torch.nn.Module, x: torch.Tensor, folder: pathlib.Path) -> None:
    """A model's loss against LibTorch's, and times."""
    with torch.no_grad():
        captured = flashlight.trace(model, x, flashlight.confirm(torch.randn_like(x)))
        program, names = built(command, captured, folder)
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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
