"""Values of LazyTensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from composit import _composit
from composit._composit import LazyTensor


def evaluate(*tensors: LazyTensor, backend: str = "reference",
             inputs: Mapping[LazyTensor, Any] | None = None) -> Any:
    """The value of one tensor as numpy.ndarray; of several a tuple, what they share computed once.

    backend: "reference" interprets the definitions; "cpp" and "mosaic" compile the graph, and keep
    the code for graphs that differ in nothing but the values of their inputs.
    inputs: values for inputs, instead of those they hold.
    Error, with the line that made the node, for what cannot be computed."""
    if not tensors:
        raise _composit.Error("[evaluate] expected at least one tensor, received none")
    values: tuple[np.ndarray, ...] = _composit.evaluate(list(tensors), backend, dict(inputs or {}))
    return values[0] if len(values) == 1 else values
