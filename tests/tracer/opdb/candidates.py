"""Calls to try on an overload that no sample reaches: first those recorded of its out=, in-place,
functional or copying siblings, then calls made up from the schema alone.

    for call in Candidates(recorded).of(op): ...     # many do not suit the op, which refuses them
"""

import itertools
from collections import defaultdict

import torch

from facts import seed
from tensors import clone, tensors_in
from watch import Call

_SHAPES = ((4, 4), (4,), (2, 4, 4), (2, 4, 4, 4), (1, 2, 4, 4, 4))
_VALUES = {
    "number": 2,
    "int": 1,
    "SymInt": 1,
    "float": 0.5,
    "bool": True,
    "str": "mean",
    "ScalarType": torch.float32,
    "Device": torch.device("cpu"),
    "Layout": torch.strided,
    "MemoryFormat": torch.contiguous_format,
}
_TENSORS = (
    torch.rand,
    lambda shape: torch.randint(0, 3, shape),
    lambda shape: torch.rand(shape) > 0.5,
    lambda shape: torch.quantize_per_tensor(torch.rand(shape), 0.1, 0, torch.quint8),
    lambda shape: torch.rand(shape).to_sparse(),
    lambda shape: torch.rand(shape).to_sparse_csr(),
)


class Candidates:
    def __init__(self, recorded):
        """`recorded`: op -> its calls."""
        self._families = defaultdict(list)
        for op, calls in recorded.items():
            self._families[_family(op)] += calls

    def of(self, op):
        for call in self._families[_family(op)]:
            bound = _bound_by_name(call, op)
            if bound is not None:
                yield bound
        yield from _made_up(op)


def _family(op):
    base = op._schema.name
    for suffix in ("_functional", "_copy", "_"):
        if not base.endswith("__"):
            base = base.removesuffix(suffix)
    return base


def _bound_by_name(call, target):
    """The arguments of a call as those of `target`, results of the call as its out arguments; None
    if some argument is missing or of another type."""
    types = {a.name: _main_type(a) for a in call.op._schema.arguments}
    values = call.bound()
    arguments = target._schema.arguments
    if any(types.get(a.name, _main_type(a)) != _main_type(a) for a in arguments):
        return None
    try:
        values.update(zip((a.name for a in arguments if a.is_out), _out_values(call, arguments)))
    except Exception:  # the call cannot be repeated
        return None
    if any(a.name not in values and not a.has_default_value() for a in arguments):
        return None
    return _call(target, {a.name: values.get(a.name, a.default_value) for a in arguments})


def _main_type(argument):
    return str(argument.type).removeprefix("Optional[").rstrip("]")


def _out_values(call, arguments):
    """Tensors of the right types for out arguments: those the call returns."""
    outs = [a for a in arguments if a.is_out]
    if not outs:
        return []
    with torch.no_grad():
        results = list(tensors_in(call.map(clone).run()))
    return [results] if "List" in str(outs[0].type) else results


def _call(op, values):
    arguments = op._schema.arguments
    args = [values[a.name] for a in arguments if not a.kwarg_only]
    return Call(op, args, {a.name: values[a.name] for a in arguments if a.kwarg_only})


def _made_up(op):
    """One call per kind of tensor and shape, all tensors of a call being alike."""
    for make, shape in itertools.product(_TENSORS, _SHAPES):
        seed()
        try:
            arguments = op._schema.arguments
            yield _call(op, {a.name: _value(a, lambda: make(shape), len(shape)) for a in arguments})
        except (KeyError, IndexError, RuntimeError):  # no such value, or no such tensor
            pass


def _value(argument, make_tensor, rank):
    name = str(argument.real_type)
    if "Tensor" in name:
        is_list = "List[" in name
        return [make_tensor(), make_tensor()] if is_list else make_tensor()
    if argument.has_default_value():
        return argument.default_value
    if name.startswith("Optional["):
        return None
    if name.startswith("List["):
        return [_VALUES[name[5:-1]]] * (argument.N or rank)
    return _VALUES[name]
