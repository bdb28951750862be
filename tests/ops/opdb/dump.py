#!/usr/bin/env python3
"""Writes what torch answers to the calls that its own database of operators makes.

    dump.py PROGRAM FOLDER          PROGRAM prints the names of all operators with a row

FOLDER/calls.json:

    calls       each {op, code, arguments, results, meta, cotangents, gradients}, arguments by
                name. Tensors are numbers: their names in tensors.safetensors.
                `code` runs in Python with t = safetensors.torch.load_file("tensors.safetensors").
    entries     per entry of the database: its calls, and the operators without a row by kind

Everything is seeded: two runs on one machine write the same.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import warnings

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parents[1] / "tracer" / "opdb"))
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
try:
    import numpy
    import torch
    from safetensors.torch import save_file
    from torch.testing._internal.common_methods_invocations import op_db
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; torch's operator database needs requirements-test.txt")
    sys.exit(77)

from facts import seed
from frontier import Frontier, is_plain, tensors_of
from oracle import ask
from spread import spread
from tensors import map_tensors, tensors_in

_DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64)
_LARGEST_TENSOR = 2000  # elements; more where an operator has no smaller samples
_LARGEST_OF_ALL = 20000


class Dump:
    def __init__(self, rows):
        self._rows = rows
        self.tensors, self.calls, self.entries = [], [], []
        self._known = {}  # text of a call -> its number, None where torch refused it

    def add(self, info):
        entry = {"name": info.formatted_name, "samples": 0, "calls": [], "differentiable": False}
        kinds = ("without_row", "random", "to_numbers", "not_plain", "refused", "too_large")
        names = {kind: set() for kind in kinds}
        calls = {}
        for sample in self._samples(info):
            frontier = Frontier(self._rows)
            if not _runs(info.op, sample, frontier):
                continue
            entry["samples"] += 1
            for kind in ("without_row", "random", "to_numbers"):
                names[kind] |= getattr(frontier, kind)
            for call in frontier.calls:
                number, kind = self._number_of(call)
                if number is None:
                    names[kind].add(call.op.name())
                else:
                    calls[number] = None
        entry["differentiable"] = info.supports_autograd
        entry["calls"] = list(calls)
        self.entries.append(entry | {kind: sorted(found) for kind, found in names.items()})

    def _samples(self, info):
        for dtype in (d for d in _DTYPES if d in info.dtypes):
            seed()
            numpy.random.seed(0)
            samples = list(info.sample_inputs("cpu", dtype, requires_grad=False, set_seed=False))
            small = [sample for sample in samples if _largest(sample) <= _LARGEST_TENSOR]
            least = [sample for sample in samples if _largest(sample) <= _LARGEST_OF_ALL]
            yield from spread(small or sorted(least, key=_largest)[:1])

    def _number_of(self, call):
        """The number of the call, or None and why there is none."""
        if not is_plain(call):
            return None, "not_plain"
        if any(t.numel() > _LARGEST_OF_ALL for t in tensors_of(call)):
            return None, "too_large"
        text = call.text()
        if text not in self._known:
            self._known[text] = self._ask(call)
        return self._known[text], "refused"

    def _ask(self, call):
        answer = ask(call)
        if answer is None:
            return None
        arguments = {name: self._encoded(value) for name, value in call.kwargs.items()}
        self.calls.append(
            {
                "op": call.op.name(),
                "code": _code(call.op, arguments),
                "arguments": arguments,
                "results": self._encoded_tensors(answer.results),
                "meta": answer.meta,
                "cotangents": self._encoded_tensors(answer.cotangents),
                "gradients": self._encoded_tensors(answer.gradients),
            }
        )
        return len(self.calls) - 1

    def _encoded_tensors(self, tensors):
        return tensors and [t if t is None else self._stored(t) for t in tensors]

    def _stored(self, tensor):
        self.tensors.append(tensor.detach().resolve_conj().resolve_neg().contiguous().clone())
        return len(self.tensors) - 1

    def _encoded(self, value):
        """Numbers, strings, bools and None as they are; the rest as {kind: …}."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self._stored(value)}
        if isinstance(value, (list, tuple)):
            if any(isinstance(item, torch.Tensor) for item in value):
                return {"tensors": self._encoded_tensors(value)}
            return [self._encoded(item) for item in value]
        if isinstance(value, float):  # JSON has no NaN
            return {"float": repr(value)}
        if isinstance(value, complex):
            return {"complex": [repr(value.real), repr(value.imag)]}
        for kind in ("dtype", "device", "layout", "memory_format"):
            if isinstance(value, getattr(torch, kind)):
                return {kind: str(value).removeprefix("torch.")}
        return value


def _code(op, encoded):
    """The call in Python, its tensors taken from `t`."""
    texts = [f"{name}={_argument_code(value)}" for name, value in encoded.items()]
    namespace, name = op.name().split("::")
    return f"torch.ops.{namespace}.{name}({', '.join(texts)})"


def _argument_code(value):
    if isinstance(value, list):
        return f"[{', '.join(map(_argument_code, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    ((kind, content),) = value.items()
    if kind == "tensor":
        return f't["{content}"]'
    if kind == "tensors":
        return _argument_code([i if i is None else {"tensor": i} for i in content])
    if kind == "complex":
        return f"complex({', '.join(content)})"
    if kind == "float":
        return f"float({content!r})"
    return f"torch.device({content!r})" if kind == "device" else f"torch.{content}"


def _largest(sample):
    tensors = tensors_in([sample.input, sample.args, list(sample.kwargs.values())])
    return max((tensor.numel() for tensor in tensors), default=0)


def _runs(op, sample, frontier):
    """Some samples refuse their dtype."""
    seed()
    try:
        with frontier, torch.no_grad():
            op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return False
    return True


def _save(tensors, file):
    """Dtypes that the format lacks as composit writes them: bytes, along one more axis."""
    stored, metadata = {}, {}
    for number, tensor in enumerate(tensors):
        if tensor.dtype in (torch.complex32, torch.complex128):
            metadata[f"composit.dtype:{number}"] = str(tensor.dtype).removeprefix("torch.")
            tensor = tensor.unsqueeze(-1).view(torch.uint8)
        stored[str(number)] = tensor
    save_file(stored, file, metadata)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="prints the names of all rows")
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    listed = subprocess.run([given.program], check=True, capture_output=True, text=True).stdout
    dump = Dump(set(listed.split()))
    for info in op_db:
        dump.add(info)
    given.folder.mkdir(parents=True, exist_ok=True)
    _save(dump.tensors, given.folder / "tensors.safetensors")
    contents = {"torch": torch.__version__, "calls": dump.calls, "entries": dump.entries}
    (given.folder / "calls.json").write_text(json.dumps(contents))
    print(f"{len(dump.entries)} entries, {len(dump.calls)} calls, {len(dump.tensors)} tensors")


if __name__ == "__main__":
    main()
