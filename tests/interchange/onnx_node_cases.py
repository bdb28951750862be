"""ONNX's own cases, which the package `onnx` brings along, read and evaluated here: of its operators,
and models that PyTorch exported years ago.

    onnx_node_cases.py            # what differs from onnx_node_refusals.txt is an error
    onnx_node_cases.py --write    # writes that file
    onnx_node_cases.py PATTERN    # what these cases give

Each case is a model, its inputs, and what ONNX says comes out. Operands that have to be known when a
model is read (sizes, axes) are made initializers. onnx_node_refusals.txt lists the cases that are
refused, with the operator; it may only become shorter. A case that gives other numbers is an error.
"""

import pathlib
import re
import sys
import tempfile
import warnings

import composit
import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

warnings.simplefilter("ignore")  # the cases divide by zero where they are made
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

REFUSED = pathlib.Path(__file__).with_name("onnx_node_refusals.txt")
KNOWN_OPERAND = "has to be known when the model is read"


class NotComparable(Exception):
    """Inputs or results that NumPy has no dtype for, or that are no tensors."""


def array_of(value):
    """A case's value, however it is given."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, list) or value is None:
        raise NotComparable("no tensor")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise NotComparable(f"{array.dtype}")
    return array


def with_known(model, values, known):
    """The model with these inputs as initializers, and the sizes of the others as they are given."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for name in known:
        made.graph.initializer.append(numpy_helper.from_array(values[name], name))
    for info in made.graph.input:
        if info.name in values and info.name not in known:
            for dimension, size in zip(info.type.tensor_type.shape.dim, values[info.name].shape):
                dimension.dim_value = size
    return made


def load(model, values, path):
    """The graph, and the names of its inputs: as few operands as possible are known."""
    names = list(values)
    integers = [name for name in names[1:] if values[name].dtype.kind in "biu"]
    error = None
    for known in ([], integers, names[1:], names):
        path.write_bytes(with_known(model, values, known).SerializeToString())
        try:
            return composit.load_onnx(path), [name for name in names if name not in known]
        except composit.Error as caught:
            error = caught
            if KNOWN_OPERAND not in str(caught):
                raise
    raise error


def differences(case, path):
    """What differs from what ONNX says, for people; empty where nothing does."""
    inputs, outputs = case.data_sets[0]
    values = {info.name: array_of(value) for info, value in zip(case.model.graph.input, inputs)}
    expected = [array_of(value) for value in outputs]
    graph, names = load(case.model, values, path)
    given = {tensor: values[name] for tensor, name in zip(graph.inputs, names)}
    received = composit.evaluate(*graph.outputs, inputs=given)
    received = received if isinstance(received, tuple) else (received,)
    try:
        for ours, theirs in zip(received, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (ours.dtype, ours.shape, theirs.dtype)
            # ONNX rounds to float16 behind each step, we behind the last: two units in the last place.
            rtol = max(case.rtol, 2 * np.finfo(np.float16).eps) if theirs.dtype == np.float16 else case.rtol
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=case.atol or 1e-7)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def refusal_of(error, path):
    """Why, in a few words that do not depend on names."""
    text = str(error).removeprefix(f"[onnx] {path}: ")
    if text.startswith("these operators are not known:"):
        names = {re.split(r"[ :]", line.strip().replace("::", "."))[0] for line in text.splitlines()[1:]}
        return "not known: " + " ".join(sorted(names))
    return re.sub(r"'[^']*'", "…", text)


class Stored:
    """A case that lies in the package as files."""

    rtol, atol = 1e-3, 1e-7

    def __init__(self, folder):
        self.name = f"{folder.parent.name}/{folder.name}"
        self.model = onnx.load(folder / "model.onnx")
        data = folder / "test_data_set_0"
        self.data_sets = [[[self._tensor(data / f"{kind}_{i}.pb") for i in range(len(list(data.glob(f"{kind}_*"))))]
                           for kind in ("input", "output")]]

    @staticmethod
    def _tensor(path):
        """A TensorProto; None for what is none."""
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
        except DecodeError:
            return None
        return tensor if tensor.data_type else None


def all_cases():
    """Those of operators, then those that are files."""
    yield from collect_testcases(None)
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for model in sorted(data.glob("*/*/model.onnx")):
        yield Stored(model.parent)


def results(pattern=""):
    """By case: None where it agrees, else whether it is refused and why."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for case in all_cases():
            if not re.search(pattern, case.name):
                continue
            try:
                text = differences(case, path)
                found[case.name] = ("differs", text) if text else None
            except NotComparable:
                continue
            except composit.Error as error:
                found[case.name] = ("refused", refusal_of(error, path))
    return found


def main(arguments):
    """The exit status."""
    write = arguments == ["--write"]
    found = results("" if write or not arguments else arguments[0])
    refused = {name: result[1] for name, result in found.items() if result and result[0] == "refused"}
    differ = {name: result[1] for name, result in found.items() if result and result[0] == "differs"}
    print(f"{len(found)} cases, {len(found) - len(refused) - len(differ)} agree, {len(refused)} are refused")
    for name, text in differ.items():
        print(f"{name} differs: {text}")
    if arguments and not write:
        for name, text in refused.items():
            print(f"{name} is refused: {text}")
        return 0
    if write:
        REFUSED.write_text("".join(f"{name}: {text}\n" for name, text in sorted(refused.items())))
        return bool(differ)
    listed = dict(line.split(": ", 1) for line in REFUSED.read_text().splitlines())
    for name in sorted(refused.keys() - listed.keys()):
        print(f"{name} is refused, and was not: {refused[name]}")
    for name in sorted(listed.keys() - refused.keys()):
        print(f"{name} is not refused any more: take it out of {REFUSED.name}")
    return bool(differ or refused.keys() != listed.keys())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
