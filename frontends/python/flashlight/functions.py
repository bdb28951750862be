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
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from composit import Error

from flashlight import _flashlight


def vmap(function: Callable, *, backend: str = "cpp", **options: Any) -> "Function":
    """`function` of floats as a function of tensors, element by element; its arguments are
    broadcast together. Compiled at the first call for each dtype and size."""
    return Function(function, True, backend, options)


def compile_function(function: Callable, *, backend: str = "cpp", **options: Any) -> "Function":
    """`function` of tensors and numbers as compiled C++, control flow included."""
    return Function(function, False, backend, options)


class Function:
    """A Python function compiled to C++; see `vmap`. Differentiable under autograd."""

    def __init__(self, function: Callable, elementwise: bool, backend: str, options: dict):
        functools.update_wrapper(self, function)
        name = function.__name__
        options.setdefault("name", name)
        text, file = _source(function)
        self._function = _flashlight.CompiledFunction(text, file, name, elementwise, backend,
                                                      options)

    def __call__(self, *inputs: Any) -> Any:
        """A tensor for tensors (or a tuple of them), an array for arrays, a float for numbers."""
        results = self._function.call([_tensor(value) for value in inputs])
        values = tuple(_like(inputs, result) for result in results)
        return values[0] if len(values) == 1 else values

    def vjp(self, *inputs_and_cotangents: Any) -> Any:
        """The inputs, then a cotangent per result: a gradient per input."""
        count = len(inspect.signature(self.__wrapped__).parameters)
        inputs, cotangents = inputs_and_cotangents[:count], inputs_and_cotangents[count:]
        gradients = self._function.vjp(list(map(_tensor, inputs)), list(map(_tensor, cotangents)))
        values = tuple(_like(inputs, gradient) for gradient in gradients)
        return values[0] if len(values) == 1 else values

    def source(self, *inputs: Any) -> str:
        """The C++ for inputs like these; for numbers where none are given."""
        if not inputs:
            inputs = (0.0,) * len(inspect.signature(self.__wrapped__).parameters)
        return self._function.source([_tensor(value) for value in inputs])

    @property
    def nnModule(self) -> torch.nn.Module:  # noqa: N802  Knossos' name
        """The function as a new module, for torch.nn.Sequential."""
        return _FunctionModule(self)

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}>"


class _FunctionModule(torch.nn.Module):
    def __init__(self, function: Function):
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)

    def extra_repr(self) -> str:
        return self.function.__name__


def _source(function: Callable) -> tuple[str, str]:
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise Error(f"[vmap] the source of {function.__name__} is not to be had; functions are "
                    "compiled from the file they stand in") from error
    text = textwrap.dedent("".join(lines))
    start = next(i for i, line in enumerate(text.splitlines()) if line.startswith("def "))
    # Lines of the text are those of the file, so that errors point there.
    return "\n" * (first - 1 + start) + "\n".join(text.splitlines()[start:]) + "\n", (
        inspect.getsourcefile(function) or "<text>")


def _tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(value))
    return torch.tensor(float(value), dtype=torch.float64)


def _like(inputs: tuple, result: torch.Tensor) -> Any:
    if any(isinstance(value, torch.Tensor) for value in inputs):
        return result
    return result.numpy() if any(isinstance(v, np.ndarray) for v in inputs) else result.item()
