"""What torch says of one call: results, types on the Meta backend, gradients.

    answer = ask(call)      # None if torch refuses the call

    answer.results          # tensors; None where one is undefined
    answer.meta             # "float32[2, 3]" per result; None if the Meta backend has no answer
    answer.cotangents       # per result, None where none flows; None altogether if the operator
                            # has no derivative for these arguments
    answer.gradients        # per tensor among the arguments
"""

import contextlib
from typing import NamedTuple

import torch

from facts import seed
from tensors import clone

_DIFFERENTIATED = (torch.float64, torch.complex128)


class Answer(NamedTuple):
    results: list
    meta: list
    cotangents: list
    gradients: list


def ask(call):
    try:
        seed()
        with torch.no_grad():
            results = _results(_run(call.map(clone)))
    except Exception:  # what was accepted inside of another operator may be refused from outside
        return None
    return Answer(results, _meta(call), *_gradients(call))


def _run(call):
    """Numbers stay numbers, which Watch's own way of calling would make tensors."""
    return call.op(**call.kwargs)


def _results(value):
    """Tensors and Nones, lists flattened."""
    values = value if isinstance(value, (list, tuple)) else [value]
    flat = []
    for item in values:
        flat += item if isinstance(item, (list, tuple)) else [item]
    return [item if isinstance(item, torch.Tensor) else None for item in flat]


def _meta(call):
    on_meta = call.map(lambda tensor: tensor.to("meta"))
    meta = torch.device("meta")
    kwargs = {
        name: meta if isinstance(value, torch.device) else value
        for name, value in on_meta.kwargs.items()
    }
    try:
        with torch.no_grad():
            results = _results(_run(on_meta._replace(kwargs=kwargs)))
    except Exception:  # no kernel for Meta, or sizes that depend on data
        return None
    return [None if result is None else type_text(result) for result in results]


def type_text(tensor):
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _gradients(call):
    leaves = []

    def leaf(tensor):
        copy = clone(tensor)
        if tensor.dtype in _DIFFERENTIATED:
            copy.requires_grad_(True)
        leaves.append(copy)
        return copy

    try:
        seed()
        results = _results(_run(call.map(leaf)))
    except Exception:
        return None, None
    flows = [r is not None and r.requires_grad and r.dtype in _DIFFERENTIATED for r in results]
    if not any(flows):
        return None, None
    cotangents = [torch.randn_like(r) if f else None for r, f in zip(results, flows)]
    outputs = [r for r, f in zip(results, flows) if f]
    gradients = _backward(outputs, [t for t in leaves if t.requires_grad], cotangents)
    if gradients is None:
        return None, None
    found = iter(gradients)
    return cotangents, [next(found) if t.requires_grad else None for t in leaves]


def _backward(outputs, leaves, cotangents):
    """Zeros where nothing depends on a leaf; None where torch has no derivative."""
    seeds = [c for c in cotangents if c is not None]
    with contextlib.suppress(RuntimeError, NotImplementedError):
        found = torch.autograd.grad(outputs, leaves, seeds, allow_unused=True)
        return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, found)]
    return None
