"""NumPy's functions on LazyTensors: `np.exp(x)` is `composit.numpy.exp(x)`.

https://numpy.org/doc/stable/user/basics.dispatch.html"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from composit._composit import LazyTensor, ValuesNeeded

_functions: dict[Any, Callable] = {}  # of composit, by NumPy's function

# The functions that a ufunc's methods along an axis stand for.
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
               "logical_and": "all", "logical_or": "any"}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}


def install(numpy: ModuleType, ours: dict[str, Any]) -> None:
    """Teaches LazyTensor NumPy's protocols; `ours` are the functions of composit.numpy."""
    for name, function in ours.items():
        theirs = getattr(numpy, name, None)
        if callable(function) and callable(theirs) and not isinstance(theirs, type):
            _functions[theirs] = function
    for name in ours["linalg"].__all__:
        _functions[getattr(numpy.linalg, name)] = getattr(ours["linalg"], name)
    _functions.update({
        numpy.shape: lambda a: a.shape,
        numpy.ndim: lambda a: a.ndim,
        numpy.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
        numpy.copy: lambda a: a,
        numpy.iscomplexobj: lambda x: x.dtype.kind == "c",
        numpy.isrealobj: lambda x: x.dtype.kind != "c",
        numpy.result_type: lambda *of: numpy.result_type(*map(_dtype_or_number, of)),
    })

    def array_ufunc(self, ufunc, method, *inputs, **kwargs):
        name = ufunc.__name__
        if "out" in kwargs:
            raise ValuesNeeded(f"[numpy.{name}] a result that is not computed yet cannot be "
                               "written into an array; composit.evaluate(x) computes it")
        function = _functions.get(ufunc)
        if method == "reduce" and name in _REDUCTIONS:
            function = ours[_REDUCTIONS[name]]
            kwargs.setdefault("axis", 0)
        elif method == "accumulate" and name in _SCANS:
            function = ours[_SCANS[name]]
            kwargs.setdefault("axis", 0)
        elif method == "outer" and function is not None:
            a, b = map(ours["asarray"], inputs)
            inputs = (a.reshape(a.shape + (1,) * b.ndim), b)
        elif method != "__call__" or function is None:
            raise _missing(f"numpy.{name}" + ("" if method == "__call__" else f".{method}"))
        return function(*inputs, **kwargs)

    def array_function(self, func, types, args, kwargs):
        function = _functions.get(func)
        if function is None:
            raise _missing(f"{func.__module__}.{func.__name__}")
        return function(*args, **kwargs)

    def get_attribute(self, name):
        if hasattr(numpy.ndarray, name):
            raise _MissingMethod(f"[LazyTensor] composit has no method '{name}' of numpy.ndarray; "
                                 "composit.evaluate(x) gives an array that has it")
        raise AttributeError(f"'LazyTensor' object has no attribute '{name}'")

    LazyTensor.__array_ufunc__ = array_ufunc
    LazyTensor.__array_function__ = array_function
    LazyTensor.__getattr__ = get_attribute


class _MissingMethod(ValuesNeeded, AttributeError):
    """So that hasattr(x, "tofile") is False, and functions that need it run on values."""


def _missing(name: str) -> ValuesNeeded:
    return ValuesNeeded(f"[{name}] composit has no such function of graphs; composit.evaluate(x) "
                        "gives an array for it, @composit.wrap_as_operation() makes a function of "
                        "yours that calls it a node")


def _dtype_or_number(value: Any) -> Any:
    return value.dtype if isinstance(value, LazyTensor) else value
