"""Derivatives of values of a graph; they are graphs as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from composit import _composit
from composit._composit import Error, LazyTensor


def chain_rule(gradients: Mapping[LazyTensor, Any],
               inputs: Sequence[LazyTensor]) -> list[LazyTensor]:
    """One gradient per input: the sum over all outputs of their gradient times the derivative of
    the output. `gradients`: by output what flows back into it, of its shape and dtype.

    A loss may map to itself; its value flows back then. `grad(loss, inputs)` is the plain derivative,
    the same as `{loss: ones_like(loss)}`.

    Zeros where no output depends on an input. Error for integers, and for an operation without a
    derivative."""
    return _composit.chain_rule(list(gradients.items()), list(inputs))


def grad(loss: LazyTensor, inputs: Sequence[LazyTensor]) -> list[LazyTensor]:
    """The gradients of a loss of one element."""
    if loss.size != 1:
        raise Error(f"[grad] expected a loss of one element, received shape {loss.shape}")
    return chain_rule({loss: _composit.numpy.ones_like(loss)}, inputs)


def jvp(outputs: Sequence[LazyTensor], inputs: Sequence[LazyTensor],
        tangents: Sequence[Any]) -> list[LazyTensor]:
    """Forward mode: how outputs change along `tangents`, one per input."""
    return _composit.jvp(list(outputs), list(inputs), list(tangents))


def hessian_vector_product(loss: LazyTensor, inputs: Sequence[LazyTensor],
                           vectors: Sequence[Any]) -> list[LazyTensor]:
    """The second derivatives of `loss` by `inputs` times `vectors`, one per input."""
    return _composit.hessian_vector_product(loss, list(inputs), list(vectors))
