"""Arrays from values.

Each is an input of the graph that holds its value, under a name of its own, so that two arrays
filled alike are two values to differentiate by. Python's numbers and NumPy's arrays beside a
LazyTensor are constants instead, known by their content."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from composit import _composit
from composit._composit import LazyTensor

_numbers = itertools.count()
_constants = contextvars.ContextVar("constants", default=False)


@contextlib.contextmanager
def as_constants() -> Iterator[None]:
    """Within, arrays are constants: a function that is traced has no inputs but its arguments."""
    token = _constants.set(True)
    try:
        yield
    finally:
        _constants.reset(token)


def held(value: np.ndarray, maker: str, name: str = "") -> LazyTensor:
    """`value` as an input called `name`; without one, as the `maker` of the array."""
    if _constants.get() and not name:
        return LazyTensor(value)
    return _composit.numpy.held(value, name or f"{maker}_{next(_numbers)}")


def asarray(a: Any, dtype: Any = None, *, name: str = "") -> LazyTensor:
    """`a` as a LazyTensor: itself if it is one, else an input that holds the value."""
    if not isinstance(a, LazyTensor) and not _is_plain(a):
        a = LazyTensor(a)  # lists of LazyTensors, tensors of other libraries
    if isinstance(a, LazyTensor):
        return a if dtype is None else a.astype(dtype)
    return held(np.asarray(a, dtype), "array", name)


def array(object: Any, dtype: Any = None, *, name: str = "") -> LazyTensor:  # noqa: A002  NumPy's
    """As `asarray`: there is no difference where arrays do not change."""
    return asarray(object, dtype, name=name)


def zeros(shape: int | Sequence[int], dtype: Any = None, *, name: str = "") -> LazyTensor:
    """Zeros, float64 unless `dtype` says otherwise."""
    return held(np.zeros(shape, dtype), "zeros", name)


def ones(shape: int | Sequence[int], dtype: Any = None, *, name: str = "") -> LazyTensor:
    """Ones, float64 unless `dtype` says otherwise."""
    return held(np.ones(shape, dtype), "ones", name)


def empty(shape: int | Sequence[int], dtype: Any = None, *, name: str = "") -> LazyTensor:
    """Zeros: there is no memory that could be left as it is."""
    return held(np.zeros(shape, dtype), "empty", name)


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *,
         name: str = "") -> LazyTensor:
    """`fill_value` in every element, broadcast; a node where it is a LazyTensor."""
    if isinstance(fill_value, LazyTensor):
        return _composit.numpy.broadcast_full(shape, fill_value, dtype)
    return held(np.full(shape, fill_value, dtype), "full", name)


def ndarray(shape: int | Sequence[int], dtype: Any = "float64", *, name: str) -> LazyTensor:
    """An input without a value: `evaluate(y, inputs={x: value})` gives it one."""
    return _composit.numpy.placeholder(shape, dtype, name)


def _is_plain(value: Any) -> bool:
    """Whether numpy.asarray takes `value`, and no LazyTensor is in it."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, range))
