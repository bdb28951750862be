"""Sees every call that passes torch's dispatcher, and what it did to the memory of its arguments.

    watch = Watch()
    with watch:
        torch.nn.functional.batch_norm(x, mean, var, training=True)
    watch.undeclared       # {("aten::batch_norm", "running_mean"), ("aten::native_batch_norm", ...
    watch.calls            # up to a few different calls per overload, cloned before they ran

It is the tracer's own way of looking: a boxed fallback on TESTING_ONLY_GenericMode, above Autograd.
A TorchDispatchMode sits below and never meets a composite op such as aten::batch_norm. The key
stays included while an op runs, so the calls that an op makes inside are seen as well.
"""

import contextlib
import ctypes
from collections import defaultdict
from typing import NamedTuple

import torch

_KEY = torch._C._parse_dispatch_key("TESTING_ONLY_GenericMode")
_KEYSET = torch._C.DispatchKeySet(_KEY)
_KEYS_BELOW = torch._C._dispatch_keyset_full_after(_KEY)
_SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
_CALLS_KEPT_PER_OP = 5


@contextlib.contextmanager
def unwatched():
    """Calls made here are neither seen nor changed by a torch function mode or by autograd."""
    with (
        torch._C._ExcludeDispatchKeyGuard(_KEYSET),
        torch._C.DisableTorchFunctionSubclass(),
        torch.no_grad(),
    ):
        yield


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


class Call(NamedTuple):
    """An op and its arguments, kept apart from the program they came from."""

    op: torch._ops.OpOverload
    args: list
    kwargs: dict

    def map(self, function):
        """The call with function(tensor) in place of each tensor."""
        kwargs = {name: map_tensors(function, value) for name, value in self.kwargs.items()}
        return Call(self.op, map_tensors(function, self.args), kwargs)

    def run(self):
        return self.op(*self.args, **self.kwargs)


def qualified_name(op):
    """`aten::add.Tensor`; an empty overload name is left out."""
    schema = op._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def bind(schema, args, kwargs):
    """Argument name -> value, for the arguments that were given."""
    bound = {argument.name: value for argument, value in zip(schema.arguments, args)}
    bound.update(kwargs)
    return bound


def with_tensors_for_numbers(schema, args, kwargs):
    """Python sees a wrapped number as int or float; a boxed call takes only a tensor there."""
    types = {argument.name: str(argument.type) for argument in schema.arguments}

    def convert(name, value):
        is_number = isinstance(value, (bool, int, float, complex))
        return torch.tensor(value) if is_number and "Tensor" in types[name] else value

    names = [argument.name for argument in schema.arguments]
    args = [convert(name, value) for name, value in zip(names, args)]
    return args, {name: convert(name, value) for name, value in kwargs.items()}


class Watch:
    """Collects undeclared writes while active as a context; one watch is active at a time."""

    _active = None

    def __init__(self):
        self.undeclared = set()
        self.calls = defaultdict(list)  # op -> some of its calls
        self._kinds = defaultdict(set)  # op -> what tells its calls apart
        self._guards = contextlib.ExitStack()

    def __enter__(self):
        Watch._active = self
        self._guards.enter_context(torch._C._IncludeDispatchKeyGuard(_KEY))
        return self

    def __exit__(self, *exception):
        self._guards.close()
        Watch._active = None

    def run(self, keyset, op, args, kwargs):
        with unwatched():
            args, kwargs = with_tensors_for_numbers(op._schema, args, kwargs)
            bound = bind(op._schema, args, kwargs)
            self._keep(Call(op, args, kwargs))
            before = _undeclared_storages(op._schema, bound)
        try:
            return op.redispatch(keyset & _KEYS_BELOW, *args, **kwargs)
        finally:
            for argument, storage, content in before:
                if storage_bytes(storage) != content:
                    self.undeclared.add((qualified_name(op), argument))

    def _keep(self, call):
        """Keeps the first, second, fourth, eighth ... call that differs in more than its data."""
        kinds = self._kinds[call.op]
        has_storage = any(isinstance(value, torch.UntypedStorage) for value in call.args)
        if len(self.calls[call.op]) == _CALLS_KEPT_PER_OP or has_storage:
            return
        kinds.add(repr(call.map(lambda t: (t.is_nested or t.shape, t.dtype, t.layout))))
        if len(kinds) >= 1 << len(self.calls[call.op]):
            self.calls[call.op].append(call.map(clone))


def _undeclared_storages(schema, bound):
    """(argument, storage, its bytes) of all storages that no declared write can reach."""
    declared, others = set(), []
    for argument in schema.arguments:
        for tensor in tensors_in(bound.get(argument.name)):
            for storage in storages(tensor):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    declared.add(storage._cdata)
                else:
                    others.append((argument.name, storage))
    return [(name, s, storage_bytes(s)) for name, s in others if s._cdata not in declared]


def _fallback(keyset, op, *args, **kwargs):
    return Watch._active.run(keyset, op, args, kwargs)


_library = torch.library.Library("_", "IMPL")
_library.fallback(_fallback, "TESTING_ONLY_GenericMode", with_keyset=True)
