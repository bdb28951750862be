"""Functions of numbers and small tensors, compiled from their source with branches and loops.

    @flashlight.vmap
    def relu3(x: float) -> float:
        if x < 0.0:
            return 0.0
        elif x < 1.0:
            return 1 / 3 * x ** 3
        else:
            return x - 2 / 3

    relu3(0.5), relu3(torch.randn(4)), relu3.vjp(t, torch.ones_like(t)), relu3.nnModule
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from composit import Error

from flashlight import _flashlight
from flashlight.source import source_of


def vmap(function: Callable, *, backend: str = "cpp", **options: Any) -> "Function":
    """`function` of floats as a function of tensors, element by element; its arguments are
    broadcast together. Compiled at the first call for each dtype and size."""
    return Function(function, True, backend, options)


def compile_function(function: Callable, *, backend: str = "cpp", **options: Any) -> "Function":
    """`function` of tensors and numbers as compiled C++, control flow included."""
    return Function(function, False, backend, options)


class Function:
    """A Python function compiled to C++; see `vmap`. Differentiable under autograd, any number of
    times.

    It may call functions of its file and use numbers around it. Error, with the line, for what
    cannot be compiled."""

    def __init__(self, function: Callable, elementwise: bool, backend: str, options: dict):
        functools.update_wrapper(self, function)
        self._recipe = (elementwise, backend, dict(options))
        self._parameters = list(inspect.signature(function).parameters)

    @functools.cached_property
    def _function(self):
        """Made at the first call, when functions that stand further below are there as well."""
        elementwise, backend, options = self._recipe
        text, file = source_of(self.__wrapped__)
        return _flashlight.CompiledFunction(text, file, self.__name__, elementwise, backend,
                                            {"name": self.__name__, **options})

    def __call__(self, *inputs: Any) -> Any:
        """A tensor for tensors (or a tuple of them), an array for arrays, a float for numbers.
        Numbers beside tensors take their dtype; integers are floats to a function of floats."""
        results = self._function.call(self._tensors(inputs))
        values = tuple(_like(inputs, result) for result in results)
        return values[0] if len(values) == 1 else values

    def vjp(self, *inputs_and_cotangents: Any) -> Any:
        """The inputs, then a cotangent per result: a gradient per input."""
        count = len(self._parameters)
        inputs, cotangents = inputs_and_cotangents[:count], inputs_and_cotangents[count:]
        if not cotangents:
            raise Error(f"[{self.__name__}.vjp] expected {count} inputs and a cotangent per result, "
                        f"received {len(inputs_and_cotangents)} arguments")
        tensors = self._tensors(inputs_and_cotangents)
        gradients = self._function.vjp(tensors[:count], tensors[count:])
        values = tuple(_like(inputs, gradient) for gradient in gradients)
        return values[0] if len(values) == 1 else values

    def source(self, *inputs: Any) -> str:
        """The C++ for inputs like these; for numbers where none are given."""
        return self._function.source(self._tensors(inputs or (0.0,) * len(self._parameters)))

    def _tensors(self, values: tuple) -> list[torch.Tensor]:
        elementwise = self._recipe[0]
        tensors = [_as_tensor(value, self.__name__, elementwise) for value in values]
        dtypes = [tensor.dtype for tensor in tensors if tensor is not None]
        dtype = functools.reduce(torch.promote_types, dtypes) if dtypes else torch.float64
        if not dtype.is_floating_point:
            dtype = torch.float64
        return [torch.tensor(float(value), dtype=dtype) if tensor is None else tensor
                for value, tensor in zip(values, tensors)]

    @property
    def nnModule(self) -> torch.nn.Module:  # noqa: N802  Knossos' name
        """The function as a new module, for torch.nn.Sequential."""
        return _FunctionModule(self)

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}>"

    def __copy__(self) -> "Function":
        return self

    def __deepcopy__(self, _memo: dict) -> "Function":
        return self  # it never changes; copies of a module share it

    def __reduce__(self):
        return _find, (self.__module__, self.__qualname__, *self._recipe)


def _find(module: str, name: str, elementwise: bool, backend: str, options: dict) -> Function:
    """What was pickled: the function of that name, compiled again."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, Function) else Function(found, elementwise, backend, options)


class _FunctionModule(torch.nn.Module):
    def __init__(self, function: Function):
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)

    def extra_repr(self) -> str:
        return self.function.__name__


def _as_tensor(value: Any, function: str, elementwise: bool) -> torch.Tensor | None:
    """None for a number."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
        default = torch.float64
    else:
        default = torch.get_default_dtype()
    if isinstance(value, torch.Tensor):
        is_float = value.dtype.is_floating_point or value.dtype.is_complex
        return value if is_float or not elementwise else value.to(default)
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return None
    raise Error(f"[{function}] expected tensors, arrays and numbers, received a "
                f"{type(value).__name__}: {value!r}")


def _like(inputs: tuple, result: torch.Tensor) -> Any:
    if any(isinstance(value, torch.Tensor) for value in inputs):
        return result
    return result.numpy() if any(isinstance(v, np.ndarray) for v in inputs) else result.item()
