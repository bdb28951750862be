"""A scope opened by hand, for programs that are no single call.

    with flashlight.tracer.trace() as scope:
        y = model(x)
    scope.lazy(y)                    # y as a value of a graph
    composit.numpy.evaluate(y)       # the same graph, evaluated by composit
"""

from __future__ import annotations

import torch

from composit import Error, LazyTensor

from flashlight import _flashlight
from flashlight.capture import HIDDEN_FOLDERS
from flashlight.modes import RecordedModes
from flashlight.program import named_tensors

_last: "trace | None" = None


class trace:
    """Records every operator that runs on this thread inside the `with` block.

    `modules`: modules by name, whose parameters are then inputs of their names."""

    def __init__(self, *, strict: bool = False, modules: dict[str, torch.nn.Module] | None = None):
        self._strict = strict
        self._modules = modules or {}
        self._scope = None
        self._recorded_modes = RecordedModes()

    def __enter__(self) -> "trace":
        global _last
        self._scope = _flashlight.Scope(self._strict, HIDDEN_FOLDERS)
        for name, tensor, kind in named_tensors(self._modules):
            self._scope.name(tensor, name, kind)
        _last = self
        self._recorded_modes.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._recorded_modes.__exit__()
        self._scope.stop()

    def lazy(self, tensor: torch.Tensor) -> LazyTensor:
        """The graph that leads to the value `tensor` has; after the block for tensors nobody
        wrote to since. Its inputs and parameters hold their values."""
        if self._scope is None:
            raise Error("[trace] a scope knows tensors from the `with` block on")
        return self._scope.lazy(tensor)


def lazy(tensor: torch.Tensor) -> LazyTensor:
    """The graph that leads to `tensor`, of the scope that was opened last."""
    if _last is None:
        raise Error("[trace] no tensor was traced; open a scope: with flashlight.tracer.trace():")
    return _last.lazy(tensor)
