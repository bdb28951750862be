"""What the tests here compare by.

Compiled code is as close to float64 as torch's own float32 is, within 4 times: other orders of
summation are allowed, other computations are not.
"""

import contextlib

import torch

from flashlight.structure import flatten

TIMES = 4.0


def leaves(value):
    """The tensors of a nested value."""
    return flatten(value, "value")[0]


def same_bits(a, b):
    x, y = leaves(a), leaves(b)
    return len(x) == len(y) and all(
        p.dtype == q.dtype and p.shape == q.shape
        and torch.equal(p.contiguous().view(torch.uint8).reshape(-1) if p.dim() else p,
                        q.contiguous().view(torch.uint8).reshape(-1) if q.dim() else q)
        for p, q in zip(x, y))


@contextlib.contextmanager
def in_float64(module):
    """The module, and what it makes by default, in float64; float32 again after, the same bits, and
    the same tensors as its buffers."""
    buffers = [(child, dict(child._buffers)) for child in module.modules()]
    module.double()
    torch.set_default_dtype(torch.float64)  # CLIP builds its causal mask in the default dtype
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        module.float()
        for child, before in buffers:
            child._buffers.update(before)


def doubled(tensors):
    return [t.double() if t.is_floating_point() else t for t in tensors]


def loss_of(model):
    """One number that every floating point result of the model takes part in."""

    def loss(*arguments, **keywords):
        return sum(t.square().mean() for t in numbers(model(*arguments, **keywords)))

    return loss


def numbers(value):
    return [t for t in leaves(value) if t.is_floating_point()]


def exactly(module, function, arguments, keywords):
    """What `function`, which calls the module, gives in float64."""
    tensors, structure = flatten((arguments, keywords), "arguments")
    positional, named = structure.unflatten(doubled(tensors))
    with in_float64(module):
        return function(*positional, **named)


def distance(values, exact):
    """Of all values together, Euclidean."""
    return sum(float((p.double() - q).square().sum()) for p, q in zip(values, exact)) ** 0.5


def known(ours, torchs, exact):
    """Without what is not a number in float64, where masks of the least float32 are infinite."""
    places = [~t.isnan() for t in exact]
    return tuple([t[p] for t, p in zip(values, places)] for values in (ours, torchs, exact))


def times_further(ours, torchs, exact):
    """How many times further `ours` is from `exact` than torch's float32 is."""
    assert len(ours) == len(torchs) == len(exact) > 0
    rounding = distance(torchs, exact)
    assert rounding > 0, "float32 is exact here, which tells nothing"
    return distance(ours, exact) / rounding
