"""Tensors inside arguments and results, and the memory they consist of."""

import ctypes

import torch

_SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def tensors_in(value):
    """The tensors in an argument or a result: itself, or the elements of (nested) lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from tensors_in(element)


def map_tensors(function, value):
    """`value` with each tensor in it replaced by function(tensor)."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [map_tensors(function, element) for element in value]
    return value


def parts(tensor):
    """The strided tensors a tensor consists of: itself, or indices and, last, values."""
    if tensor.layout in _SPARSE_PARTS:
        return [getattr(tensor, name)() for name in _SPARSE_PARTS[tensor.layout]]
    return [tensor]


def storages(tensor):
    """The storages that hold a CPU tensor's data: one, or those of a sparse tensor's parts."""
    if tensor.device.type != "cpu" or tensor._is_zerotensor():
        return []
    return [part.untyped_storage() for part in parts(tensor) if torch._C._has_storage(part)]


def storage_bytes(storage):
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


def clone(tensor):
    """A detached copy with the same strides and offset, its storage copied whole."""
    is_plain = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested
    if not is_plain or not torch._C._has_storage(tensor):
        return tensor.detach().clone()
    flags = tensor.is_conj(), tensor.is_neg()
    plain = tensor.detach()
    plain = torch._neg_view(plain) if flags[1] else plain
    plain = plain.conj() if flags[0] else plain
    copy = torch.empty(0, dtype=tensor.dtype).set_(
        tensor.untyped_storage().clone(), tensor.storage_offset(), tensor.size(), tensor.stride()
    )
    copy = torch._neg_view(copy) if flags[1] else copy
    return copy.conj() if flags[0] else copy
