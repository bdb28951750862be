"""Calls with arguments made up from the schema alone, for ops that no sample reaches.

    for call in invented_calls(op): ...     # many do not suit the op, which then refuses them
"""

import itertools

import torch

from opdb_watch import Call

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


def invented_calls(op):
    """One call per kind of tensor and shape, all tensors of a call being alike."""
    arguments = op._schema.arguments
    for make, shape in itertools.product(_MAKERS, _SHAPES):
        torch.manual_seed(0)
        try:
            values = {a.name: _value(a, lambda: make(shape), len(shape)) for a in arguments}
        except (KeyError, IndexError, RuntimeError):  # no such value, or no such tensor
            continue
        args = [values[a.name] for a in arguments if not a.kwarg_only]
        yield Call(op, args, {a.name: values[a.name] for a in arguments if a.kwarg_only})


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


def _indices(shape):
    return torch.randint(0, 3, shape)


def _quantized(shape):
    return torch.quantize_per_tensor(torch.rand(shape), 0.1, 0, torch.quint8)


def _sparse(shape):
    return torch.rand(shape).to_sparse()


def _sparse_rows(shape):
    return torch.rand(shape).to_sparse_csr()


_MAKERS = (torch.rand, _indices, _quantized, _sparse, _sparse_rows)
