"""Captures from folders and from files of other tools."""

from __future__ import annotations

import operator
import pathlib
from collections.abc import Mapping, Sequence

from composit import Error

from flashlight import _flashlight
from flashlight.capture import Capture
from flashlight.family import Family


Sizes = Mapping[str, int | tuple[int, ...]]


def load(path: str | pathlib.Path, sizes: Sizes | None = None) -> Capture | Family:
    """What `Capture.save` wrote, or `captured.save` of C++; or a file of another tool, `.pt2` or `.onnx`, as
    `load_pt2` and `load_onnx` read it: by what is in the file, whatever its name. sizes: of an ONNX model.

    Classes that results were made of are not stored: a ModelOutput comes back as a dict."""
    tool = _flashlight.tool_of(pathlib.Path(path))
    if tool == "onnx":
        return load_onnx(path, sizes)
    if sizes:
        raise Error(f"[load] expected sizes for an ONNX model alone, received them for '{path}'")
    if tool == "pt2":
        return load_pt2(path)
    return Capture._loaded(_flashlight.Capture.load(pathlib.Path(path)))


def load_pt2(file: str | pathlib.Path) -> Capture | Family:
    """The program of a file that `torch.export.save` or `Capture.export` wrote; a family where it has dynamic
    shapes. Nothing of it is run. Save what `program.run_decompositions({})` gives: the dialect that torch
    writes otherwise is read as far as its writes in place allow. Error lists all that composit has no
    operations for."""
    native = _flashlight.load_pt2(pathlib.Path(file))
    return Family(native, []) if isinstance(native, _flashlight.Family) else Capture._loaded(native)


def load_onnx(file: str | pathlib.Path, sizes: Sizes | None = None) -> Capture | Family:
    """An ONNX model, of any exporter. Arguments are its inputs, by position; results a dict by the names of its
    outputs, or as the program gave them where `Capture.export` wrote the model. Its example is random.

    sizes: those that the model leaves open, {"batch": 2}, or by input and axis, {"input_ids.0": 2}; in a range,
    as {"tokens": (8, 512)} or {"tokens": (64, 512, 64)} in steps, which gives a family. Error for operators that
    are not known, all at once, for sizes that are open and not given, and where a family does not hold."""
    fixed, rows = {}, []
    for name, size in (sizes or {}).items():
        numbers = [operator.index(one) for one in (size if isinstance(size, Sequence) else [size])]
        if len(numbers) == 1:
            fixed[name] = numbers[0]
        elif len(numbers) in (2, 3):
            rows.append((name, *numbers, *(1,) * (3 - len(numbers))))
        else:
            raise Error(f"[load] expected a number or a range for the size '{name}', received {size!r}")
    native = _flashlight.load_onnx(pathlib.Path(file), fixed, rows)
    return Family(native, []) if isinstance(native, _flashlight.Family) else Capture._loaded(native)
