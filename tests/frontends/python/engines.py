"""Runs captures in other engines, which live in an environment of their own: as ONNX models in
onnxruntime and OpenVINO, as modules of StableHLO in XLA and IREE.

    if engines.PYTHON:
        results = engines.run(captured, (x,), {}, ["onnxruntime"])["onnxruntime"]

`./dev interchange` makes the environment; FLASHLIGHT_INTERCHANGE_PYTHON names another one."""

import os
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

from flashlight.structure import flatten

_ROOT = pathlib.Path(__file__).resolve().parents[3]
# The format that each engine reads.
FORMATS = {"onnxruntime": "onnx", "openvino": "onnx", "xla": "mlir", "iree": "mlir"}
_SCRIPTS = {"onnx": "run_onnx.py", "mlir": "run_stablehlo.py"}
_NAMED = os.environ.get("FLASHLIGHT_INTERCHANGE_PYTHON") or str(_ROOT / "build/interchange/bin/python")
PYTHON = _NAMED if pathlib.Path(_NAMED).exists() else ""


def run(captured, arguments, keywords, engines, **options):
    """By engine, the outputs of the model by name. What went wrong there is an error here."""
    with Models() as models:
        for ending in {FORMATS[engine] for engine in engines}:
            models.add("model", captured, arguments, keywords, ending, **options)
        models.run(engines)
        return {engine: models.results("model", engine) for engine in engines}


def run_family(family, calls, engines, **options):
    """By engine, what the family's model gives for each call, by name."""
    with Models() as models:
        models.add_family("model", family, calls, **options)
        models.run(engines)
        return {engine: [models.results(f"model.call{number}", engine) for number in range(len(calls))]
                for engine in engines}


def check_family(test, family, calls, engines, check):
    """Runs calls of the family's model, and `check`, with engine, number, arguments, results by name, and guards, for
    each of them: a subtest."""
    for engine, results in run_family(family, calls, list(engines)).items():
        for number, ((arguments, _), received) in enumerate(zip(calls, results)):
            guards = [bool(value) for name, value in received.items() if name.startswith("guard_")]
            with test.subTest(engine=engine, call=number):
                check(engine, number, arguments, received, guards)


def run_file(file, engines):
    """By engine, what a model that was written, beside its inputs, gives by name."""
    _run([PYTHON, _ROOT / "tests/interchange/run_onnx.py", file.parent, *engines])
    return {engine: _results(file.parent, file.stem, engine) for engine in engines}


def _results(folder, name, engine):
    """RuntimeError that says what the engine said."""
    error = folder / f"{name}.{engine}.error"
    if error.exists():
        raise RuntimeError(error.read_text())
    return dict(np.load(folder / f"{name}.{engine}.npz"))


def _as_array(tensor, ending):
    """ONNX has complex numbers as pairs of real ones."""
    plain = tensor.resolve_conj()
    return (torch.view_as_real(plain) if ending == "onnx" and plain.is_complex() else plain).numpy()


def as_tensor(array, dtype):
    """What an engine gave for a tensor of this dtype."""
    tensor = torch.from_numpy(array)
    is_pair = dtype.is_complex and not tensor.is_complex()
    return torch.view_as_complex(tensor.contiguous()) if is_pair else tensor


def _run(command):
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        lines = process.stderr.strip().splitlines()
        raise RuntimeError(f"the process ended with {process.returncode}: {lines[-1:]}")


class Models:
    """Models that one process runs."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._path = pathlib.Path(self._folder.name)
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def add(self, name, captured, arguments, keywords, ending="onnx", **options):
        """flashlight.Error where the capture cannot be written."""
        captured.export(self._path / f"{name}.{ending}", **options)
        self._add_call(name, captured, arguments, keywords, ending)

    def add_family(self, name, family, calls, further=None, **options):
        """A family, as one ONNX model that is run for each call, a pair of arguments and keywords.
        further: inputs that are no arguments, by name."""
        family.export(self._path / f"{name}.onnx", **options)
        for number, (arguments, keywords) in enumerate(calls):
            self._add_call(f"{name}.call{number}", family, arguments, keywords, "onnx", further)

    def _add_call(self, name, captured, arguments, keywords, ending, further=None):
        nodes = [n.attributes for n in captured.graph.nodes if n.op == "composit::input"]
        names = [n["name"] for n in nodes if n["kind"] == "user_input"]
        tensors, _ = flatten((tuple(arguments), keywords), "arguments")
        inputs = {n: _as_array(t.detach(), ending) for n, t in zip(names, tensors)}
        np.savez(self._path / f"{name}.npz", **inputs, **(further or {}))

    def run(self, engines):
        for ending, script in _SCRIPTS.items():
            if own := [engine for engine in engines if FORMATS[engine] == ending]:
                _run([PYTHON, _ROOT / "tests/interchange" / script, self._path, *own])

    def results(self, name, engine):
        """By name. RuntimeError that says what the engine said."""
        return _results(self._path, name, engine)


def times_off(received, expected):
    """The largest difference of an output from what torch gives, as a part of the largest element.
    Infinities are compared as they are; what is not a number in torch has to be so here."""
    worst = 0.0
    for number, tensor in enumerate(expected):
        torchs = tensor.detach().numpy()
        theirs = as_tensor(received[f"output_{number}"], tensor.dtype).numpy()
        if theirs.shape != torchs.shape:
            return float("inf")
        known = np.isfinite(torchs)
        if not np.array_equal(theirs[~known], torchs[~known], equal_nan=True):
            return float("inf")
        if known.any():
            x, y = theirs[known].astype(np.float64), torchs[known].astype(np.float64)
            worst = max(worst, np.abs(x - y).max() / max(np.abs(y).max(), 1e-30))
    return worst
