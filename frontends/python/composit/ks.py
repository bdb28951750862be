"""Programs of Knossos' language, whose functions are operations.

    program = composit.ks.load("gmm.ks")
    value = program.gmm(alphas, means, icf, x, 1.0, 2)        # one node of a graph
    program["[rev gmm]"]((alphas, means, icf, x, 1.0, 2), 1.0)  # its derivative
    print(program.run())                                      # what its main prints

Arguments and results are numbers, arrays and tuples of them. A tensor of tuples is a tuple of
arrays, a Vec of Vecs one array. Integers and bools are known while the graph is made, and may be
sizes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from composit import _composit
from composit._composit import Error


def load(file: str | pathlib.Path) -> "Program":
    """The program in a file. Error with line and column for what is none."""
    return Program(_composit.KsProgram(str(file)))


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
        remaining = iter(results)
        return _put_together(self._function.result, remaining)

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
        leaves.append(int(value))
    elif form == "Bool" and isinstance(value, (bool, np.bool_)):
        leaves.append(bool(value))
    else:
        _take_numbers(form, value, name, leaves)


def _take_numbers(form: str, value: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(value, (str, bytes, dict, set, type(None))):
        raise Error(f"[ks] {name}: expected {form}, received {_text(value)}")
    leaves.append(value)


def _take_tensor(element: Any, value: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(element, tuple):  # of tensors: one array has the axes of both
        _take_tensor(element[1], value, name, leaves)
    elif isinstance(element, list):
        if not isinstance(value, (tuple, list)) or len(value) != len(element):
            raise Error(f"[ks] {name}: expected a tuple of {len(element)} arrays for a tensor of "
                        f"tuples, received {_text(value)}")
        for number, (part, item) in enumerate(zip(element, value)):
            _take_tensor(part, item, f"{name}[{number}]", leaves)
    else:
        _take_numbers(f"an array of {element}", value, name, leaves)


def _put_together(form: Any, results: Iterator[Any]) -> Any:
    if isinstance(form, tuple):
        return _put_together(form[1], results)
    if isinstance(form, list):
        return tuple(_put_together(part, results) for part in form)
    return next(results)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _floating(leaves: list[Any]) -> np.dtype:
    """The dtype of the arrays of Floats; float64, as Python's, where there are only numbers."""
    dtypes = [np.dtype(leaf.dtype) for leaf in leaves
              if hasattr(leaf, "dtype") and np.dtype(leaf.dtype).kind == "f"]
    return np.result_type(*dtypes) if dtypes else np.dtype("float64")


def _array(value: Any, floating: np.dtype) -> Any:
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return array.astype(floating)
    return array.astype(np.int64) if array.dtype.kind in "iu" else array


def _text(value: Any) -> str:
    return f"a {type(value).__name__}"
