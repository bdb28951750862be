"""How a value is made of tensors: taken apart before a call, put together after.

    tensors, structure = flatten({"ids": ids, "mask": None}, "argument")
    structure.unflatten(tensors)

Tensors, numbers, strings, None, lists, tuples, dicts, dataclasses, whatever is registered with
`torch.utils._pytree` (`ModelOutput` of transformers), and objects that hold such values as
attributes (the distribution an encoder of diffusers gives). Numbers and strings are part of the
structure: a capture holds for the ones it was made with.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from composit import Error

_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
          torch.memory_format, torch.Size, enum.Enum, range, slice, type(Ellipsis))


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """A value without its tensors. Equal to another one of the same text: 2 is not 2.0."""

    kind: str  # "tensor", "absent", "value", "list", "tuple", "map"
    value: Any = None  # of kind "value"
    keys: tuple = ()  # of kind "map", as text
    children: tuple["Structure", ...] = ()
    rebuild: Callable[[list], Any] | None = dataclasses.field(default=None, compare=False)

    def unflatten(self, tensors) -> Any:
        """The value; `tensors` in the order in which flatten gave them."""
        return self._take(iter(tensors))

    def _take(self, tensors) -> Any:
        if self.kind == "tensor":
            return next(tensors)
        if self.kind in ("absent", "value"):
            return self.value
        return self.rebuild([child._take(tensors) for child in self.children])

    def __eq__(self, other) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        if (self.kind, self.keys) != (other.kind, other.keys):
            return False
        if self.kind == "value":
            return _text_of(self.value) == _text_of(other.value)
        return self.children == other.children

    __hash__ = None

    def with_numbers_of(self, other: "Structure") -> "Structure":
        """The same with the numbers that `other`, which differs in nothing else, has."""
        if self.kind == "value" and type(self.value) in (int, float):
            return self if self == other else Structure("value", type(self.value)(other.value))
        children = tuple(child.with_numbers_of(one) for child, one in zip(self.children, other.children))
        return dataclasses.replace(self, children=children)

    def text(self) -> str:
        """As flashlight::str(Structure) writes it."""
        return json.dumps(self._json(), separators=(",", ":"), ensure_ascii=False)

    def _json(self):
        if self.kind == "tensor":
            return "tensor"
        if self.kind == "absent":
            return None
        if self.kind == "value":
            return {"value": _text_of(self.value)}
        children = [child._json() for child in self.children]
        if self.kind == "list":
            return children
        if self.kind == "tuple":
            return {"tuple": children}
        return {"map": [list(entry) for entry in zip(self.keys, children)]}

    def __str__(self) -> str:
        if self.kind in ("tensor", "absent"):
            return "tensor" if self.kind == "tensor" else "None"
        if self.kind == "value":
            return _text_of(self.value)
        children = [str(child) for child in self.children]
        if self.kind == "map":
            return "{" + ", ".join(f"{k}: {c}" for k, c in zip(self.keys, children)) + "}"
        left, right = "[]" if self.kind == "list" else "()"
        return left + ", ".join(children) + right


def flatten(value: Any, name: str) -> tuple[list[torch.Tensor], Structure]:
    """The tensors of `value` in order, and what is left. Error that names the place of what is no
    tensor and no plain value; `name` is what the value is called there."""
    tensors: list[torch.Tensor] = []
    return tensors, _flatten(value, name, tensors)


def _flatten(value: Any, path: str, tensors: list) -> Structure:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return Structure("tensor")
    if value is None:
        return Structure("absent")
    if isinstance(value, _PLAIN):
        return Structure("value", value)
    kind, keys, children, rebuild = _children(value, path)
    parts = tuple(_flatten(child, _place(path, kind, key), tensors)
                  for key, child in zip(keys, children))
    return Structure(kind, None, tuple(map(str, keys)) if kind == "map" else (), parts, rebuild)


def _place(path: str, kind: str, key: Any) -> str:
    return f"{path}[{key!r}]" if kind == "map" else f"{path}[{key}]"


def _children(value: Any, path: str):
    """Kind, keys, children, and the function that puts children together again."""
    if type(value) in (list, tuple):
        return type(value).__name__, range(len(value)), value, type(value)
    if type(value) is dict:
        keys = list(value)
        return "map", keys, list(value.values()), lambda parts: dict(zip(keys, parts))
    node = _pytree.SUPPORTED_NODES.get(type(value))
    if node is not None:
        children, context = node.flatten_fn(value)
        keys = _keys_of(value, len(children))
        kind = "map" if keys else "tuple"
        return (kind, keys or range(len(children)), children,
                lambda parts: node.unflatten_fn(parts, context))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "map", value._fields, list(value), lambda parts: type(value)(*parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _attributes(value, [field.name for field in dataclasses.fields(value)])
    if _is_record(value):
        return _attributes(value, list(vars(value)))
    raise Error(
        f"[structure] {path} is a {type(value).__module__}.{type(value).__qualname__}; expected "
        "tensors, numbers, strings, None, and lists, tuples, dicts or dataclasses of them. For a "
        "class of yours, tell torch.utils._pytree.register_pytree_node what it holds")


def _is_record(value: Any) -> bool:
    """All that there is of it are its attributes: nothing that runs, no C++ behind it."""
    return (type(value).__reduce__ is object.__reduce__ and type(value).__new__ is object.__new__
            and bool(getattr(value, "__dict__", None)) and not callable(value)
            and not isinstance(value, type))


def _attributes(value: Any, names: list[str]):
    def rebuild(parts):
        again = object.__new__(type(value))  # __init__ need not take them
        for name, part in zip(names, parts):
            object.__setattr__(again, name, part)
        return again

    return "map", names, [getattr(value, name) for name in names], rebuild


def _keys_of(value: Any, count: int):
    keys = list(value.keys()) if hasattr(value, "keys") else None
    return keys if keys is not None and len(keys) == count else None


def parse(text: str) -> Structure:
    """The structure a saved capture has; what it builds is made of lists, tuples and dicts."""
    return _from_json(json.loads(text))


def _from_json(data) -> Structure:
    if data == "tensor":
        return Structure("tensor")
    if data is None:
        return Structure("absent")
    if isinstance(data, list):
        return Structure("list", children=tuple(map(_from_json, data)), rebuild=list)
    ((kind, content),) = data.items()
    if kind == "value":
        return Structure("value", _literal(content))
    if kind == "tuple":
        return Structure("tuple", children=tuple(map(_from_json, content)), rebuild=tuple)
    keys = tuple(key for key, _ in content)
    return Structure("map", keys=keys, children=tuple(_from_json(child) for _, child in content),
                     rebuild=lambda parts: dict(zip(keys, parts)))


class _Text(str):
    """A value only its text is known of."""


def _text_of(value) -> str:
    if isinstance(value, _Text):
        return str(value)
    if isinstance(value, (bool, enum.Enum)):
        return repr(value)
    for kind in (int, float):  # NumPy's floats, too
        if isinstance(value, kind):
            return kind.__repr__(value)
    return repr(value)


def _literal(text: str):
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return _Text(text)
