"""What a program changed in the objects around it: attributes of modules, and what a function finds
around it.

    before = Snapshot(modules, program)
    program(x)
    for change in before.changes():
        print(change)       # module 'net.0': number 'step' was 3 and is 4

No operator shows such a change. `self.step += 1` is a number a replay repeats, `self.h = h` memory of
its own, a list that grows a state of another size. Whether a replay is right all the same (a weight
that a hook computes anew in each call) another run shows, not this.

A snapshot holds no tensor: what the program lets go is free.
"""

from __future__ import annotations

import collections
import functools
import inspect
import numbers
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)
_TABLES = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
# Tables of torch.nn.Module that say how it is called, not what it holds.
_SKIPPED = {name for name in vars(torch.nn.Module()) if name.startswith("_")} - set(_TABLES)
_DEPTH = 4  # of containers in containers
_WIDTH = 1000  # elements of a container that are looked at
_ABSENT = "absent"


class Change(NamedTuple):
    path: str | None  # of the module: "encoder.0"; None for what the function finds around it
    attribute: str
    kind: str  # "tensor rebound", "number changed", "container changed", "module replaced"
    before: str
    after: str

    def __str__(self) -> str:
        what, happened = self.kind.split()
        verb = {"rebound": "is another one", "replaced": "is another one"}.get(happened, "changed")
        where = "around the program" if self.path is None else f"module '{self.path}'"
        return (f"{where}: {what} '{self.attribute}' {verb}: it was {self.before} and is "
                f"{self.after}")


class Snapshot:
    """Of all modules in `modules`, by the names in front of their parameters', and of the variables
    around `function`."""

    def __init__(self, modules: dict[str, torch.nn.Module], function: Callable):
        self._function = function
        self._around = _values_around(function)
        self._modules = [(path, weakref.ref(module), _values_of(module))
                         for path, module in _all_modules(modules)]

    def changes(self) -> list[Change]:
        found = _differences(None, self._around, _values_around(self._function))
        for path, reference, before in self._modules:
            if (module := reference()) is not None:
                found += _differences(path, before, _values_of(module))
        return found


def _differences(path: str | None, before: dict, after: dict) -> list[Change]:
    if before == after:
        return []
    pairs = {name: (before.get(name), after.get(name)) for name in before | after}
    return [Change(path, name, _kind(was, now), _text(was), _text(now))
            for name, (was, now) in pairs.items() if was != now]


def _all_modules(modules: dict[str, torch.nn.Module]) -> Iterator[tuple[str, torch.nn.Module]]:
    seen: set = set()
    for prefix, module in modules.items():
        for path, child in module.named_modules(seen, prefix):
            if not isinstance(child, torch.jit.ScriptModule):  # C++ holds what it has
                yield path, child


class _Tensor:
    """This tensor object, known by a reference that does not hold it."""

    kind = "tensor rebound"
    __slots__ = ("reference", "text")

    def __init__(self, tensor: torch.Tensor):
        self.reference = weakref.ref(tensor)
        lazy = isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)
        sizes = "of no size yet" if lazy else list(tensor.shape)
        self.text = f"{str(tensor.dtype).removeprefix('torch.')} {sizes}"

    def __eq__(self, other) -> bool:
        mine = self.reference()
        return type(other) is _Tensor and mine is not None and mine is other.reference()


class _Module(_Tensor):
    kind = "module replaced"
    __slots__ = ()

    def __init__(self, module: torch.nn.Module):
        self.reference = weakref.ref(module)
        self.text = f"a {type(module).__name__}"

    def __eq__(self, other) -> bool:
        return type(other) is _Module and self.reference() is other.reference()


class _Number:
    kind = "number changed"
    __slots__ = ("number", "text")

    def __init__(self, number):
        self.number, self.text = number, repr(number)

    def __eq__(self, other) -> bool:  # by text: NaN is NaN, 1 is not 1.0
        return type(other) is _Number and self.text == other.text


class _Container:
    kind = "container changed"
    __slots__ = ("items", "size", "text")

    def __init__(self, container, depth: int):
        self.size = len(container)
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        self.items = []
        if depth < _DEPTH:
            for (key, value), _ in zip(pairs, range(_WIDTH)):
                self.items.append((_value(key, depth + 1), _value(value, depth + 1)))
        tensors = sum(type(value) is _Tensor for _, value in self.items)
        self.text = f"a {type(container).__name__} of {self.size}" + (
            f" with {tensors} tensors" if tensors else "")

    def __eq__(self, other) -> bool:
        return type(other) is _Container and self.size == other.size and self.items == other.items


def _value(value: Any, depth: int = 0):
    """What is compared of it; None for objects whose inside is not looked at."""
    if isinstance(value, torch.Tensor):
        return _Tensor(value)
    if isinstance(value, torch.nn.Module):
        return _Module(value)
    if value is None or isinstance(value, (numbers.Number, str)):
        return _Number(value)
    if isinstance(value, _CONTAINERS):
        return _Container(value, depth)
    return None


def _values_of(module: torch.nn.Module) -> dict[str, Any]:
    values = {}
    for name, value in vars(module).items():
        if name in _TABLES:
            for key, entry in value.items():
                values[key] = _value(entry)
        elif name not in _SKIPPED:
            values[name] = _value(value)
    return values


def _values_around(function: Callable) -> dict[str, Any]:
    """Variables of the functions and the file around it; attributes of the object it is a method
    of."""
    while isinstance(function, functools.partial):
        function = function.func
    values = {}
    owner = getattr(function, "__self__", None)
    if hasattr(owner, "__dict__") and not isinstance(owner, (torch.nn.Module, type)) and (
            not inspect.ismodule(owner)):
        values = {name: _value(value) for name, value in vars(owner).items()}
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not inspect.isfunction(function):
        return values
    try:
        found = inspect.getclosurevars(function)
    except ValueError:  # of a variable that is not assigned yet
        return values
    return values | {name: _value(value)
                     for name, value in (found.globals | found.nonlocals).items()}


def _kind(was, now) -> str:
    return next(value.kind for value in (was, now, was)
                if value is not None and value.text != "None")


def _text(value) -> str:
    return _ABSENT if value is None else value.text
