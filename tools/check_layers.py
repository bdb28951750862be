#!/usr/bin/env python3
"""Checks that the sources keep to the project's layers; prints file:line of each violation.

    tools/check_layers.py [ROOT]

A file may include its own folder and the folders that LAYERS lists for it, by path from the project
root. Beyond that: LibTorch only where LAYERS says so, never a .cpp file, and at most 500 lines, those of
Python of at most 120 columns.
"""

import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

MAX_LINES = 500
MAX_COLUMNS = 120  # of Python; clang-format has the columns of C++
# Not compiled here: text of the cpp backend, which a test checks; what a written folder carries along;
# what tests put beside generated code.
ELSEWHERE = ("examples/generated/", "flashlight/package/files/", "tests/flashlight/cuda/host_cuda.h",
             "tests/flashlight/cuda/host_memory.h")
FOR_LIBTORCH = {"flashlight/runtime/aten.hpp"}  # For LibTorch programs; the rest of its layer has none.
SOURCES = {".h", ".hpp", ".cpp"}
SCRIPTS = {".py"}


class Layer(NamedTuple):
    includes: tuple[str, ...]  # Folders of ours that a file of this layer may include.
    torch: bool  # Whether it may include LibTorch.


COMPOSIT = (
    "composit/shipped",
    "composit/ir",
    "composit/op",
    "composit/ops",
    "composit/eval",
    "composit/io",
    "composit/ad",
    "composit/passes",
    "composit/quantize",
    "composit/family",
    "composit/interchange",
    "composit/numpy",
    "composit/nn",
)
FLASHLIGHT_PARTS = (
    "flashlight/scalar",
    "flashlight/fixed",
    "flashlight/runtime",
    "flashlight/toolchain",
    "flashlight/backends",
    "flashlight/loops",
    "flashlight/text",
    "flashlight/package",
    "flashlight/cpp",
    "flashlight/cuda",
    "flashlight/mosaic",
    "flashlight/devices",
    "flashlight/pjrt",
)
# Layers of a backend: none includes another's folder.
BACKEND = (
    *COMPOSIT,
    "flashlight/runtime",
    "flashlight/toolchain",
    "flashlight/backends",
    "flashlight/loops",
    "flashlight/text",
    "flashlight/package",
)
LIBRARY = (*COMPOSIT, *FLASHLIGHT_PARTS, "tracer", "flashlight")
EXAMPLE_LIBRARIES = ("examples/models", "examples/zoo", "examples/objectives", "examples/programs")

# Lowest first. A file belongs to the deepest folder that contains it.
LAYERS = {
    "composit/shipped": Layer((), torch=False),  # Generated code carries it, so it needs nothing.
    "composit/ir": Layer((), torch=False),
    "composit/op": Layer(("composit/shipped", "composit/ir"), torch=False),
    "composit/ops": Layer(("composit/shipped", "composit/ir", "composit/op"), torch=False),
    "composit/eval": Layer(
        ("composit/shipped", "composit/ir", "composit/op", "composit/ops"), torch=False
    ),
    "composit/io": Layer(("composit/ir", "composit/op", "composit/ops"), torch=False),
    "composit/ad": Layer(("composit/ir", "composit/op", "composit/ops"), torch=False),
    "composit/passes": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/eval"), torch=False
    ),
    "composit/quantize": Layer(
        ("composit/shipped", "composit/ir", "composit/op", "composit/ops", "composit/eval", "composit/io"), torch=False
    ),
    "composit/family": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/eval", "composit/passes", "composit/io"),
        torch=False,
    ),
    "composit/interchange": Layer(
        (
            "composit/shipped",
            "composit/ir",
            "composit/op",
            "composit/ops",
            "composit/eval",
            "composit/passes",
            "composit/io",
            "composit/family",
        ),
        torch=False,
    ),
    "composit/numpy": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/eval"), torch=False
    ),
    "composit/nn": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/eval", "composit/ad"), torch=False
    ),
    "flashlight/scalar": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/ad"), torch=False
    ),
    "flashlight/fixed": Layer(
        ("composit/ir", "composit/op", "composit/ops", "composit/shipped", "flashlight/runtime"), torch=False
    ),
    "flashlight/toolchain": Layer(("composit/ir", "composit/io"), torch=False),
    "tracer": Layer(COMPOSIT, torch=True),
    "flashlight/runtime": Layer(("composit/shipped",), torch=False),  # What generated code includes.
    "flashlight/backends": Layer((*COMPOSIT, "flashlight/runtime"), torch=False),
    "flashlight/loops": Layer((*COMPOSIT, "flashlight/runtime"), torch=False),
    "flashlight/text": Layer((*COMPOSIT, "flashlight/loops"), torch=False),
    "flashlight/package": Layer(
        (
            *COMPOSIT,
            "flashlight/runtime",
            "flashlight/toolchain",
            "flashlight/loops",
            "flashlight/text",
        ),
        torch=False,
    ),
    "flashlight/cpp": Layer(BACKEND, torch=False),
    "flashlight/cuda": Layer(BACKEND, torch=False),
    "flashlight/mosaic": Layer(BACKEND, torch=False),
    "flashlight/devices": Layer(BACKEND, torch=False),
    "flashlight/pjrt": Layer(BACKEND, torch=False),
    "flashlight": Layer((*COMPOSIT, *FLASHLIGHT_PARTS, "tracer"), torch=True),
    "frontends/torchscript": Layer(LIBRARY, torch=True),
    "frontends/ks": Layer((*COMPOSIT, "flashlight/scalar"), torch=False),
    "frontends": Layer((*LIBRARY, "frontends/torchscript", "frontends/ks"), torch=True),
    "examples/models": Layer((), torch=True),  # Plain LibTorch, as its users write it.
    "examples/zoo": Layer((*LIBRARY, "examples/models"), torch=True),
    "examples/objectives": Layer(COMPOSIT, torch=False),
    "examples/programs": Layer((*COMPOSIT, "flashlight/scalar", "examples/objectives"), torch=False),
    "examples": Layer((*LIBRARY, *EXAMPLE_LIBRARIES, "frontends/ks"), torch=True),
    "benchmarks/cpp": Layer((*LIBRARY, "examples/objectives", "benchmarks"), torch=False),
    "benchmarks": Layer((*LIBRARY, *EXAMPLE_LIBRARIES), torch=True),
    "tests": Layer(
        (*LIBRARY, *EXAMPLE_LIBRARIES, "frontends", "frontends/torchscript", "frontends/ks", "benchmarks/cpp"),
        torch=True,
    ),
}

TOP_FOLDERS = sorted({folder.split("/")[0] for folder in LAYERS} | {"tools"})
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")


def layer_of(path: str) -> str | None:
    """The deepest folder of LAYERS that contains `path`."""
    folders = [folder for folder in LAYERS if path.startswith(folder + "/")]
    return max(folders, key=len, default=None)


def include_problem(name: str, layer: str, quote: str, target: str) -> str | None:
    """What is wrong with including `target` in the file `name`, which is of `layer`."""
    if target.endswith((".cpp", ".cc", ".cxx")):
        return f"includes {target}: no file may include a .cpp file"
    if TORCH.match(target):
        if LAYERS[layer].torch or name in FOR_LIBTORCH:
            return None
        return f"includes LibTorch ({target}): {layer} is free of it"
    if target.split("/")[0] not in TOP_FOLDERS:
        return None if quote == "<" else f"includes {target}: not a path from the project root"
    below = layer_of(target)
    if below == layer or below in LAYERS[layer].includes:
        return None
    return f"includes {target}: {layer} must not depend on {below or 'a folder in no layer'}"


def violations_of(root: Path, path: Path) -> Iterator[str]:
    name = path.relative_to(root).as_posix()
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > MAX_LINES:
        yield f"{name}:{len(lines)}: has {len(lines)} lines, at most {MAX_LINES} are allowed"
    if path.suffix in SCRIPTS:
        for number, line in enumerate(lines, start=1):
            if len(line) > MAX_COLUMNS:
                yield f"{name}:{number}: has {len(line)} columns, at most {MAX_COLUMNS} are allowed"
    if path.suffix not in SOURCES:
        return
    layer = layer_of(name)
    if layer is None:
        yield f"{name}:1: lies in no layer; LAYERS in tools/check_layers.py lists them"
        return
    for number, line in enumerate(lines, start=1):
        include = INCLUDE.match(line)
        problem = include and include_problem(name, layer, *include.groups())
        if problem:
            yield f"{name}:{number}: {problem}"


def violations(root: Path) -> Iterator[str]:
    """All violations in the files below `root`, in the order of their names."""
    for folder in TOP_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            elsewhere = path.relative_to(root).as_posix().startswith(ELSEWHERE)
            if path.suffix in SOURCES | SCRIPTS and path.is_file() and not elsewhere:
                yield from violations_of(root, path)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(violations(root))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"layers: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
