"""Functions of numpy.ndarray as nodes of a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from composit import _composit
from composit._composit import LazyTensor, ValuesNeeded
from composit.numpy._creation import as_constants


def wrap_as_operation(*, name: str | None = None,
                      vjp: Callable | None = None) -> Callable[[Callable], "Operation"]:
    """A decorator that makes a function of arrays one node of the graph.

        @cnp.wrap_as_operation()
        def relu(x: np.ndarray) -> np.ndarray:
            return np.maximum(x, 0)

    The function is run once per call, on LazyTensors, and what it does becomes a region that the
    node calls: it evaluates, differentiates, prints, saves and compiles like any other. Numbers,
    strings and other arguments are part of it. A function that asks for values (`if x.sum() > 0`)
    or calls what composit does not have is called when the graph is evaluated: the types of its
    results are those it gives for zeros, it cannot be saved or compiled, and has a derivative only
    if you give one.

    vjp: (*inputs, *cotangents) -> a gradient per input, for a function that is called when the
    graph is evaluated; it always is where this is given. Itself it is wrapped in the same way.
    name: of the node; the function's otherwise."""
    if callable(name):
        raise TypeError("wrap_as_operation takes no function; write @wrap_as_operation()")

    def decorate(function: Callable) -> Operation:
        return Operation(function, name or function.__name__, vjp)

    return decorate


class Operation:
    """A function whose call is one node; see `wrap_as_operation`."""

    def __init__(self, function: Callable, name: str, vjp: Callable | None):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name
        self._vjp = None if vjp is None else Operation(vjp, name + "_vjp", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A LazyTensor, or a tuple of them where the function gives several."""
        tensors: list[LazyTensor] = []
        call = _Call(self.function, _take(args, tensors), _take(kwargs, tensors))
        if self._vjp is None:
            try:
                with as_constants():
                    results = _composit.call_traced(self.name, call, tensors)
                return call.restore(results)
            except ValuesNeeded:
                pass
        python = _composit.PythonFunction(self.name, call, self._vjp and self._gradients)
        return call.restore(python(tensors))

    def _gradients(self, *inputs_and_cotangents: LazyTensor) -> list[LazyTensor]:
        gradients = self._vjp(*inputs_and_cotangents)
        return list(gradients) if isinstance(gradients, tuple) else [gradients]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


class _Place:
    """Where a tensor stood among the arguments."""

    def __init__(self, number: int):
        self.number = number


class _Call:
    """One call: takes the tensors alone, and remembers how results were put together."""

    def __init__(self, function: Callable, args: Any, kwargs: Any):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.single = True

    def __call__(self, tensors: list[Any]) -> list[Any]:
        result = self.function(*_put(self.args, tensors), **_put(self.kwargs, tensors))
        self.single = not isinstance(result, (tuple, list))
        return [result] if self.single else list(result)

    def restore(self, results: list[LazyTensor]) -> Any:
        return results[0] if self.single else tuple(results)


def _take(value: Any, tensors: list[LazyTensor]) -> Any:
    """`value` with places for its tensors, which are appended."""
    if isinstance(value, (list, tuple)):
        return type(value)(_take(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _take(item, tensors) for key, item in value.items()}
    if isinstance(value, (LazyTensor, np.ndarray)) or type(value) in _composit.converters:
        tensors.append(LazyTensor(value))
        return _Place(len(tensors) - 1)
    return value


def _put(value: Any, tensors: list[Any]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.number]
    if isinstance(value, (list, tuple)):
        return type(value)(_put(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: _put(item, tensors) for key, item in value.items()}
    return value
