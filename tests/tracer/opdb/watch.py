"""Sees every call that passes torch's dispatcher, and what it did to the memory of its arguments.

    watch = WriteWatch()
    with watch:
        torch.nn.functional.batch_norm(x, mean, var, training=True)
    watch.undeclared       # {"aten::batch_norm running_mean", "aten::native_batch_norm ...
    watch.calls            # up to a few different calls per overload, cloned before they ran

It is the tracer's own way of looking: a boxed fallback on TESTING_ONLY_GenericMode, above Autograd.
A TorchDispatchMode sits below and never meets a composite op such as aten::batch_norm. The key
stays included while an op runs, so the calls that an op makes inside are seen as well.
"""

import contextlib
import functools
import itertools
from collections import defaultdict
from typing import NamedTuple

import torch

from tensors import clone, map_tensors, storage_bytes, storages, tensors_in

_KEY = torch._C._parse_dispatch_key("TESTING_ONLY_GenericMode")
_KEYSET = torch._C.DispatchKeySet(_KEY)
_KEYS_BELOW = torch._C._dispatch_keyset_full_after(_KEY)
_CALLS_KEPT_PER_OP = 3


@contextlib.contextmanager
def unwatched():
    """Calls made here are neither seen nor changed by a torch function mode or by autograd."""
    with (
        torch._C._ExcludeDispatchKeyGuard(_KEYSET),
        torch._C.DisableTorchFunctionSubclass(),
        torch.no_grad(),
    ):
        yield


class Argument(NamedTuple):
    takes_tensor: bool
    is_written: bool


@functools.cache
def arguments_of(op):
    """Name -> Argument: a schema is slow to read."""
    return {
        a.name: Argument(
            takes_tensor="Tensor" in str(a.type),
            is_written=a.alias_info is not None and a.alias_info.is_write,
        )
        for a in op._schema.arguments
    }


class Call(NamedTuple):
    """An op and its arguments as Python sees them."""

    op: torch._ops.OpOverload
    args: list
    kwargs: dict

    def map(self, function):
        """The call with function(tensor) in place of each tensor."""
        kwargs = {name: map_tensors(function, value) for name, value in self.kwargs.items()}
        return Call(self.op, map_tensors(function, self.args), kwargs)

    def bound(self):
        """Argument name -> value, for the arguments that were given."""
        return dict(zip(arguments_of(self.op), self.args)) | self.kwargs

    def text(self):
        """All but the data of its tensors."""
        return repr(self.map(lambda t: (t.is_nested or t.shape, t.dtype, t.layout)))

    def run(self, how=None):
        """Calls the op, or how(*args, **kwargs)."""
        arguments = arguments_of(self.op)
        args = [_boxed(value, argument) for value, argument in zip(self.args, arguments.values())]
        kwargs = {name: _boxed(value, arguments[name]) for name, value in self.kwargs.items()}
        return (how or self.op)(*args, **kwargs)


def _boxed(value, argument):
    """Python sees a wrapped number as int or float; a boxed call takes only a tensor there."""
    if not argument.takes_tensor or not isinstance(value, (bool, int, float, complex)):
        return value
    with unwatched():
        return torch.tensor(value)


class Watch:
    """Hands each call to run(call, proceed) while active as a context; one is at a time."""

    _active = None

    def __enter__(self):
        self._guard = torch._C._IncludeDispatchKeyGuard(_KEY)
        self._guard.__enter__()
        Watch._active = self
        return self

    def __exit__(self, *exception):
        Watch._active = None
        self._guard.__exit__(*exception)


def _fallback(keyset, op, *args, **kwargs):
    call = Call(op, list(args), kwargs)
    redispatch = functools.partial(op.redispatch, keyset & _KEYS_BELOW)
    return Watch._active.run(call, functools.partial(call.run, redispatch))


_library = torch.library.Library("_", "IMPL")
_library.fallback(_fallback, "TESTING_ONLY_GenericMode", with_keyset=True)


class WriteWatch(Watch):
    """Collects undeclared writes, and a few calls of each op. Of a call like others before it,
    what it calls inside goes unseen."""

    def __init__(self):
        self.undeclared = set()
        self.calls = defaultdict(list)  # op -> some of its calls
        self._kinds = defaultdict(set)  # op -> what tells its calls apart

    def run(self, call, proceed):
        with unwatched():
            is_new = self._keep(call)
            before = _undeclared_storages(call)
        try:
            with contextlib.nullcontext() if is_new else torch._C._ExcludeDispatchKeyGuard(_KEYSET):
                return proceed()
        finally:
            for argument, storage, content in before:
                if storage_bytes(storage) != content:
                    self.undeclared.add(f"{call.op.name()} {argument}")

    def _keep(self, call):
        """Keeps the first, second, fourth ... call that differs in more than its data. Returns
        whether this one does."""
        kinds, kept = self._kinds[call.op], self.calls[call.op]
        text = call.text()
        if text in kinds:
            return False
        kinds.add(text)
        has_storage = any(isinstance(value, torch.UntypedStorage) for value in call.args)
        if len(kinds) >= 1 << len(kept) and len(kept) < _CALLS_KEPT_PER_OP and not has_storage:
            kept.append(call.map(clone))
        return True


def _undeclared_storages(call):
    """(argument, storage, its bytes) of all storages that no declared write can reach."""
    declared, others, arguments = set(), [], arguments_of(call.op)
    for name, value in call.bound().items():
        for storage in itertools.chain.from_iterable(map(storages, tensors_in(value))):
            if arguments[name].is_written:
                declared.add(storage._cdata)
            else:
                others.append((name, storage))
    return [(name, s, storage_bytes(s)) for name, s in others if s._cdata not in declared]
