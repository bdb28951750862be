"""Programs of Knossos' language on torch's tensors.

    program = flashlight.ks("gmm.ks")
    loss = program.gmm(alphas, means, icf, x, 1.0, 2)     # compiled; loss.backward() works
    program.gmm(…)                                        # one operator inside of a captured program
"""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import numpy as np
import torch

import composit.ks
from composit import Error, LazyTensor

from flashlight import _flashlight


def ks(file: str | pathlib.Path, *, backend: str = "cpp", **options: Any) -> "Program":
    """The functions of a program, compiled for each combination of dtypes, sizes and known integers
    they are called with. Error with line and column for a file that is no program."""
    return Program(composit.ks.load(file)._program, backend, options)


class Program(composit.ks.Program):
    """Functions are attributes, or items where their names are no identifiers."""

    def __init__(self, program: Any, backend: str, options: dict):
        super().__init__(program)
        self._recipe = (backend, options)

    def _function(self, function: Any) -> "Function":
        return Function(function, *self._recipe)


class Function(composit.ks.Function):
    """A function of torch's tensors, NumPy's arrays and numbers; of LazyTensors, it is a node of their
    graph. Differentiable under autograd, any number of times."""

    def __init__(self, function: Any, backend: str, options: dict):
        super().__init__(function)
        name = re.sub(r"\W+", "_", self.__name__).strip("_")  # of the C++ function
        self._recipe = (backend, {"name": name, **options})
        self._compiled: dict[tuple, Any] = {}  # by the integers and bools that are known

    def __call__(self, *arguments: Any) -> Any:
        leaves = self._leaves(arguments)
        if any(isinstance(leaf, LazyTensor) for leaf in leaves):
            return super().__call__(*arguments)
        floats = [leaf.dtype for leaf in leaves
                  if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point]
        dtype = functools.reduce(torch.promote_types, floats) if floats else torch.float64
        self._expect_tensors(leaves, set(floats))
        known = tuple(leaf if isinstance(leaf, (bool, int)) else None for leaf in leaves)
        key = tuple((type(one), one) for one in known)  # True is no 1
        if key not in self._compiled:
            self._compiled[key] = _flashlight.ks_function(self._function, list(known), *self._recipe)
        tensors = [_tensor(leaf, dtype, self.__name__)
                   for leaf, value in zip(leaves, known) if value is None]
        results = self._compiled[key].call(tensors)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            results = [result.numpy() if result.dim() else result.item() for result in results]
        return self._restored(results)

    def _expect_tensors(self, leaves: list[Any], floats: set[torch.dtype]) -> None:
        if len(floats) > 1:
            names = " and ".join(sorted(str(one).removeprefix("torch.") for one in floats))
            raise Error(f"[ks] {self.__name__} expects Floats of one dtype, received {names}")
        if any(isinstance(leaf, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(leaf)
               for leaf in leaves):
            raise Error(f"[ks] {self.__name__} has no rules for torch.func's transformations: its derivatives are "
                        f"'[fwd {self.__name__}]', '[rev {self.__name__}]' and those by autograd")


def _tensor(value: Any, dtype: torch.dtype, function: str) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        small = (torch.int8, torch.int16, torch.int32, torch.uint8)  # Integers have 64 bits
        return value.long() if value.dtype in small else value
    if isinstance(value, (float, int, bool, np.ndarray, np.number, np.bool_, list, tuple)):
        array = np.asarray(value)
        to = {"f": dtype, "i": torch.int64}.get(array.dtype.kind)
        return torch.as_tensor(array.copy() if any(step < 0 for step in array.strides) else array, dtype=to)
    raise Error(f"[ks] {function} expects tensors, arrays and numbers, received a "
                f"{type(value).__name__}")
