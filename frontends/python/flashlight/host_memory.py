"""Memory that no operator touches: what a captured program reads and writes of its tensors by
numpy(), DLPack, tolist, storages and pointers.

    with HostMemory() as memory:
        result = program(x)
    refuse_large_reads(memory.large_reads)      # unless another run showed that nothing depends on them

What is read is guarded where it has at most 4 kB: `torch.equal(x, what it was)` is recorded, whose
answer a replay compares. Larger reads are noted. What is written is refused: the memory's content is
compared around each operator that touches it, and at the end (tracer/host_memory.h). Printing is
neither recorded nor guarded, nor is torch.save, whose bytes leave the program.

Methods of torch.Tensor and of storages are replaced while a program runs in a capture. Other threads
pass through; so do the kernels of operators, and torch's own code where it asks for an address.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.utils.dlpack

from composit import Error

from flashlight import _flashlight

GUARDED_BYTES = 4096
_TORCH = str(pathlib.Path(torch.__file__).parent) + "/"
_OWN = str(pathlib.Path(__file__).parent) + "/"


class Read(NamedTuple):
    """What the program read on the host, and no guard watches."""

    place: str  # "numpy() at train.py:12 in step"
    bytes: int

    def __str__(self) -> str:
        return f"{self.place} reads {self.bytes} bytes of a tensor"


def refuse_large_reads(reads: list[Read]) -> None:
    """Error that names the first of them; nothing where there are none."""
    if reads:
        raise Error(f"[trace] {reads[0]}, more than the {GUARDED_BYTES} a guard compares; what the "
                    "program makes of them passes no operator, so a replay would repeat it: use "
                    "operators of torch, or read after the call")


class HostMemory:
    """Watches this thread while it is entered; nests."""

    def __init__(self):
        self.large_reads: list[Read] = []
        self._guarded: set = set()  # values
        self._arrays: list[weakref.ref] = []

    def __enter__(self) -> "HostMemory":
        self._native = _flashlight.HostMemory()
        _local.stack = getattr(_local, "stack", ()) + (self,)
        _patches.enter()
        return self

    def __exit__(self, kind, *_) -> None:
        _patches.leave()
        _local.stack = _local.stack[:-1]
        self._native.stop()
        self._arrays.clear()
        for place in self._native.rewritten():
            self._note(Read(f"{place}, while operators write into it,", 0))
        if kind is None:
            self._native.expect_unwritten()

    def read(self, tensor: torch.Tensor, value, how: str) -> None:
        """The program has read `tensor`, which holds `value`."""
        size = tensor.numel() * tensor.element_size()
        if size > GUARDED_BYTES:
            self._note(Read(_place(how), size))
        elif size > 0 and value not in self._guarded:
            self._guarded.add(value)
            with _quietly(), torch._C.DisableTorchFunction():
                _guard(tensor)

    def hand_out(self, tensor: torch.Tensor, how: str) -> None:
        """The program has a pointer to all memory around `tensor` until it ends."""
        self._native.hand_out(tensor, 0, 0, _place(how))

    def take_in(self, tensor: torch.Tensor, how: str) -> None:
        """`tensor` lies in memory of the program's, which it may fill until an operator reads it."""
        self._native.take_in(tensor, _place(how))

    def hand_out_array(self, tensor: torch.Tensor, array, how: str) -> None:
        """The program has it for as long as `array`, or what it is the base of, lives."""
        native = self._native
        reach = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides))
        piece = native.hand_out(tensor, array.__array_interface__["data"][0],
                                reach + array.itemsize if array.size else 0, _place(how))
        if piece:
            self._arrays.append(weakref.ref(array, lambda _: native.release(piece)))

    def _note(self, read: Read) -> None:
        if read not in self.large_reads:
            self.large_reads.append(read)


# ---- guards -------------------------------------------------------------------------------------

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _guard(tensor: torch.Tensor) -> None:
    """Records that `tensor` holds what it holds, bit for bit; two NaN are one."""
    value = tensor.detach() if tensor.requires_grad else tensor
    value = value.resolve_conj() if value.is_conj() else value
    value = value.resolve_neg() if value.is_neg() else value
    if value.numel() == 1:
        value.item()
        return
    if value.is_complex():
        value = torch.view_as_real(value)
    if value.dtype in _FLOATS:
        with _flashlight.Unrecorded():
            unordered, zero = bool(value.isnan().any()), bool((value == 0).any())
        if not unordered:  # operators that every backend has
            _expect(value)
            if zero:
                _expect(torch.signbit(value))
            return
    if value.dtype in (torch.bool, *_INTEGERS.values(), torch.int8):
        _expect(value)
    else:
        _expect(value.view(_INTEGERS[value.element_size()]))


def _expect(value: torch.Tensor) -> None:
    # Made without content and filled unseen: a constant of the graph.
    constant = torch.empty(value.shape, dtype=value.dtype, device=value.device)
    with _flashlight.Unrecorded():
        constant.copy_(value)
    torch.equal(value, constant)


# ---- where it is --------------------------------------------------------------------------------

_local = threading.local()  # stack: a HostMemory per capture around; quiet: we are at work


def _here() -> HostMemory | None:
    stack = getattr(_local, "stack", ())
    return stack[-1] if stack and not getattr(_local, "quiet", False) else None


@contextlib.contextmanager
def _quietly():
    before, _local.quiet = getattr(_local, "quiet", False), True
    try:
        yield
    finally:
        _local.quiet = before


def _unseen(function: Callable, *arguments: Any, **named: Any) -> Any:
    with _quietly(), _flashlight.Unrecorded():
        return function(*arguments, **named)


def _place(how: str) -> str:
    """As graphs name the lines of operators."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((_TORCH, _OWN, "<frozen")):
            name = code.co_filename.rpartition("/")[2]
            return f"{how} at {name}:{frame.f_lineno} in {code.co_qualname}"
        frame = frame.f_back
    return how


def _asked_by_torch() -> bool:
    """Torch's Python compares addresses, it does not read from them."""
    return sys._getframe(2).f_code.co_filename.startswith(_TORCH)


# ---- what is replaced ---------------------------------------------------------------------------


def _numpy(original):
    def numpy(self, *arguments, **named):
        memory = _here()
        value = memory and _flashlight.recorded_value(self)
        if value is None:
            return original(self, *arguments, **named)
        array = _unseen(original, self, *arguments, **named)
        memory.read(self, value, "numpy()")
        memory.hand_out_array(self, array, "numpy()")
        return array

    return numpy


def _tolist(original):
    def tolist(self):
        memory = _here()
        value = memory and _flashlight.recorded_value(self)
        if value is None:
            return original(self)
        numbers = _unseen(original, self)
        memory.read(self, value, "tolist()")
        return numbers

    return tolist


def _pointer(how: str):
    def replaced(original):
        def pointer(self, *arguments, **named):
            memory = _here()
            if memory is None or how == "data_ptr()" and _asked_by_torch():
                return original(self, *arguments, **named)
            value = _flashlight.recorded_value(self)
            if value is None:
                return original(self, *arguments, **named)
            result = _unseen(original, self, *arguments, **named)
            memory.read(self, value, how)
            memory.hand_out(self, how)
            return result

        return pointer

    return replaced


def _refused(how: str):
    def replaced(original):
        def refused(self, *arguments, **named):
            memory = _here()
            if memory is not None:
                tensor = self if isinstance(self, torch.Tensor) else _bytes_of(self)
                if _flashlight.recorded_value(tensor) is not None:
                    raise Error(f"[trace] {_place(how)}: the program wrote into the memory of this "
                                "tensor without an operator, so a replay would not write it; write "
                                "by an operator (copy_, index_put_, x[i] = …)")
            return original(self, *arguments, **named)

        return refused

    return replaced


def _text(original):
    def text(self, *arguments, **named):
        if _here() is None:
            return original(self, *arguments, **named)
        return _unseen(original, self, *arguments, **named)

    return text


def _save(original):
    def save(*arguments, **named):
        if _here() is None or not _flashlight.is_recording():
            return original(*arguments, **named)
        _flashlight.remark(_place("torch.save or pickle") + " writes what tensors hold; a replay "
                           "writes nothing")
        return _unseen(original, *arguments, **named)

    return save


def _over_memory(how: str):
    def replaced(original):
        def make(*arguments, **named):
            result = original(*arguments, **named)
            memory = _here()
            source = arguments[0] if arguments else None
            if memory is not None and _flashlight.is_recording() and not isinstance(
                    source, (list, tuple, torch.Tensor)):
                memory.take_in(result, how)
            return result

        return make

    return replaced


# ---- storages -----------------------------------------------------------------------------------


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    with _quietly(), _flashlight.Unrecorded():
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _storage_item(original):
    def item(self, index):
        memory = _here()
        value = None
        if memory is not None:
            flat = _bytes_of(self)
            value = _flashlight.recorded_value(flat)
        if value is None:
            return original(self, index)
        result = original(self, index)
        memory.read(flat, value, "a storage's element")
        if not isinstance(result, int):  # a storage over the same memory
            memory.hand_out(flat, "a storage's slice")
        return result

    return item


def _storage_pointer(original):
    def data_ptr(self):
        memory = _here()
        if memory is None or _asked_by_torch():
            return original(self)
        untyped = self if isinstance(self, torch.UntypedStorage) else self._untyped_storage
        flat = _bytes_of(untyped)
        value = _flashlight.recorded_value(flat)
        if value is None:
            return original(self)
        memory.read(flat, value, "a storage's data_ptr()")
        memory.hand_out(flat, "a storage's data_ptr()")
        return _unseen(original, self)

    return data_ptr


def _deepcopy(original):
    def __deepcopy__(self, memo):
        if _here() is None:
            return original(self, memo)
        before, _local.copied = getattr(_local, "copied", None), self
        try:
            return original(self, memo)
        finally:
            _local.copied = before

    return __deepcopy__


def _storage_clone(original):
    """Operators make the copy. Of a tensor that is all of its storage it is a clone."""
    def clone(self):
        if _here() is None or self.device.type != "cpu" or not _flashlight.is_recording():
            return original(self)
        copied = getattr(_local, "copied", None)
        with _quietly(), torch._C.DisableTorchFunction(), torch.no_grad():
            if copied is not None and copied.untyped_storage()._cdata == self._cdata:
                dense = copied.numel() * copied.element_size() == self.nbytes()
                copy = copied.clone() if dense and not copied.is_conj() else None
                if copy is not None and copy.stride() == copied.stride():
                    return copy.untyped_storage()
            flat = torch.empty(0, dtype=torch.uint8).set_(self)
            return flat.clone().untyped_storage()

    return clone


_TENSOR = {
    "numpy": _numpy,
    "tolist": _tolist,
    "data_ptr": _pointer("data_ptr()"),
    "__dlpack__": _pointer("DLPack"),
    "apply_": _refused("apply_()"),
    "map_": _refused("map_()"),
    "map2_": _refused("map2_()"),
    "__repr__": _text,
    "__format__": _text,
    "__deepcopy__": _deepcopy,
}
_STORAGE = {
    "__getitem__": _storage_item,
    "__setitem__": _refused("a storage's element"),
    "fill_": _refused("a storage's fill_()"),
    "data_ptr": _storage_pointer,
    "clone": _storage_clone,
}
_REPLACED = [
    *((torch.Tensor, name, replaced) for name, replaced in _TENSOR.items()),
    *((torch.UntypedStorage, name, replaced) for name, replaced in _STORAGE.items()),
    (torch.TypedStorage, "data_ptr", _storage_pointer),
    (torch, "save", _save),
    *((torch, name, _over_memory(f"{name}()"))
      for name in ("from_numpy", "frombuffer", "as_tensor", "asarray", "from_dlpack")),
    (torch.utils.dlpack, "from_dlpack", _over_memory("from_dlpack()")),
    *((module, name, _pointer("DLPack"))
      for module, name in ((torch, "to_dlpack"), (torch.utils.dlpack, "to_dlpack"),
                           (torch._C, "_to_dlpack"), (torch._C, "_to_dlpack_versioned"))),
]


class _Patches:
    """Stand while a program runs in a capture, on any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.users = 0
        self.made: list[tuple] = []  # owner, name, what stood there, what stands there

    def enter(self) -> None:
        with self.lock:
            self.users += 1
            if self.users == 1:
                for owner, name, replaced in _REPLACED:
                    self._replace(owner, name, replaced)

    def _replace(self, owner, name: str, replaced: Callable) -> None:
        if not hasattr(owner, name):
            return
        original = getattr(owner, name)
        standing = replaced(original)
        functools.update_wrapper(standing, original)
        self.made.append((owner, name, vars(owner).get(name, _Patches), standing))
        setattr(owner, name, standing)

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            while self.users == 0 and self.made:
                owner, name, before, standing = self.made.pop()
                if vars(owner).get(name) is not standing:
                    continue  # the program has put something else there
                if before is _Patches:
                    delattr(owner, name)  # it was inherited
                else:
                    setattr(owner, name, before)


_patches = _Patches()
