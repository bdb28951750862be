"""Programs of Knossos' language, whose functions are operations.

    program = composit.ks.load("gmm.ks")
    value = program.gmm(alphas, means, icf, x, 1.0, 2)        # one node of a graph
    program["[rev gmm]"]((alphas, means, icf, x, 1.0, 2), 1.0)  # its derivative
    print(program.run())                                      # what its main prints

Arguments and results are numbers, arrays and tuples of them. A tensor of tuples is a tuple of
arrays, a Vec of Vecs one array; where the inner ones are of different sizes, `Ragged`. Integers and
bools are known while the graph is made, and may be sizes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from composit import _composit
from composit._composit import Error


def load(file: str | pathlib.Path) -> "Program":
    """The program in a file. Error with line and column for what is none."""
    return Program(_composit.KsProgram(str(file)))


class Ragged(NamedTuple):
    """A tensor whose elements are tensors of different sizes.

        rows = composit.ks.Ragged.of([[1.0], [2.0, 3.0]])
        program.sums(rows)
    """

    values: Any   # an array as large as the largest ones; of a tensor of tuples, a tuple of them
    lengths: Any  # int64, for each tensor how long it is; for tensors of several axes, a tuple of them

    @staticmethod
    def of(rows: Any) -> "Ragged":
        """Of a list of vectors; zeros behind them."""
        arrays = [np.asarray(row) for row in rows]
        if any(array.ndim != 1 for array in arrays):
            raise Error("[ks] Ragged.of expects a list of vectors")
        lengths = np.array([array.size for array in arrays], np.int64)
        values = np.zeros((len(arrays), max(lengths, default=0)), np.result_type(*arrays) if arrays else "float64")
        for row, array in zip(values, arrays):
            row[:array.size] = array
        return Ragged(values, lengths)

    def rows(self) -> list[Any]:
        """The vectors, of values that are one array."""
        return [row[:int(length)] for row, length in zip(self.values, self.lengths)]


class Program:
    """Functions are attributes, or items where their names are no identifiers."""

    def __init__(self, program: _composit.KsProgram):
        self._program = program
        self._functions: dict[str, Function] = {}

    def __getitem__(self, name: str) -> "Function":
        if name not in self._functions:
            self._functions[name] = self._function(_composit.KsFunction(self._program, name))
        return self._functions[name]

    def _function(self, function: _composit.KsFunction) -> "Function":
        return Function(function)

    def __getattr__(self, name: str) -> "Function":
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except Error as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._program.functions if name.isidentifier())]

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.functions)

    def run(self) -> str:
        """What `main` prints."""
        return self._program.run()


class Function:
    """A function of a program, of LazyTensors and whatever numpy.asarray takes."""

    def __init__(self, function: _composit.KsFunction):
        self._function = function
        self.__name__ = function.name

    def __call__(self, *arguments: Any) -> Any:
        """A LazyTensor, or a tuple of them. Error for arguments of other types or sizes."""
        leaves = self._leaves(arguments)
        floating = _floating(leaves)
        return self._restored(self._function.call(
            [leaf if isinstance(leaf, (bool, int, _composit.LazyTensor)) else _array(leaf, floating)
             for leaf in leaves]))

    def _leaves(self, arguments: tuple) -> list[Any]:
        """The numbers of all arguments: ints, bools, and whatever holds Floats."""
        parameters = self._function.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(name for name, _ in parameters)
            raise Error(f"[ks] {self.__name__}({names}) expects {len(parameters)} arguments, received "
                        f"{len(arguments)}")
        leaves: list[Any] = []
        for (name, form), argument in zip(parameters, arguments):
            _take_apart(form, argument, name, leaves)
        return leaves

    def _restored(self, results: list[Any]) -> Any:
        return _put_together(self._function.result, list(results))

    def __repr__(self) -> str:
        return f"<function {self.__name__} of Knossos' language>"


def _take_apart(form: Any, value: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(form, tuple):  # a tensor: as its element, of arrays
        _take_tensor(form[1], value, name, leaves)
    elif isinstance(form, list):
        if not isinstance(value, (tuple, list)) or len(value) != len(form):
            raise Error(f"[ks] {name}: expected a tuple of {len(form)}, received {_text(value)}")
        for number, (part, item) in enumerate(zip(form, value)):
            _take_apart(part, item, f"{name}[{number}]", leaves)
    elif form == "Integer" and _is_whole(value):
        if not -2**63 <= value < 2**63:
            raise Error(f"[ks] {name}: expected an Integer of 64 bits, received {value}")
        leaves.append(int(value))
    elif form == "Float" and _is_whole(value):
        leaves.append(float(value))
    elif form == "Bool" and isinstance(value, (bool, np.bool_)):
        leaves.append(bool(value))
    else:
        _take_numbers(form, value, name, leaves)


def _take_numbers(form: str, value: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(value, (str, bytes, dict, set, bool, type(None))):
        raise Error(f"[ks] {name}: expected {form}, received {_text(value)}")
    if isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError:  # of rows of different sizes
            raise Error(f"[ks] {name}: expected {form}, received rows of different sizes; "
                        "composit.ks.Ragged.of takes a list of vectors") from None
    leaves.append(value)


def _take_tensor(element: Any, value: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(element, tuple):  # of tensors: one array has the axes of both
        if isinstance(value, Ragged):
            for one in value.lengths if isinstance(value.lengths, tuple) else (value.lengths,):
                leaves.append(np.asarray(one, np.int64) if isinstance(one, (list, tuple)) else one)
            value = value.values
        _take_tensor(element[1], value, name, leaves)
    elif isinstance(element, list):
        if not isinstance(value, (tuple, list)) or len(value) != len(element):
            raise Error(f"[ks] {name}: expected a tuple of {len(element)} arrays for a tensor of "
                        f"tuples, received {_text(value)}")
        for number, (part, item) in enumerate(zip(element, value)):
            _take_tensor(part, item, f"{name}[{number}]", leaves)
    else:
        _take_numbers(f"an array of {element}", value, name, leaves)


def _put_together(form: Any, results: list[Any], depth: int = 0) -> Any:
    """Takes the first results. Elements of a tensor have more axes than its lengths."""
    if isinstance(form, tuple):
        rank, element = form
        lengths = tuple(results.pop(0) for _ in range(rank) if _is_length(results, depth))
        values = _put_together(element, results, depth + rank)
        return Ragged(values, lengths if rank > 1 else lengths[0]) if lengths else values
    if isinstance(form, list):
        return tuple(_put_together(part, results, depth) for part in form)
    return results.pop(0)


def _is_length(results: list[Any], depth: int) -> bool:
    if not results or not hasattr(results[0], "dtype"):
        return bool(results) and depth == 0 and isinstance(results[0], int)
    return len(results[0].shape) == depth and str(results[0].dtype).rpartition(".")[2] == "int64"


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _floating(leaves: list[Any]) -> np.dtype:
    """The dtype of the arrays of Floats; float64, as Python's, where there are only numbers."""
    dtypes = [np.dtype(str(leaf.dtype).removeprefix("torch.")) for leaf in leaves if hasattr(leaf, "dtype")]
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    return np.result_type(*floats) if floats else np.dtype("float64")


def _array(value: Any, floating: np.dtype) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return array.astype(floating)
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def _text(value: Any) -> str:
    return f"a {type(value).__name__}"
