"""Numbers that a program reads by `item()`, and what it makes of them: the step count of an optimizer,
which becomes the bias corrections that it gives to operators.

    with FollowedNumbers() as numbers:
        result = program(x)
        numbers.tell()           # "pow(0.9, read_7)" was given to the operator after record 9

What `item()` returns is a float that remembers where it was read. Arithmetic on it gives more of its
kind; handed to a function of torch, it is noted with the formula that gives it. All else that a
program can do with a number (compare it, print it, keep it beyond the run) takes back what was noted:
the read decides something, or is wanted for itself, and stays a guard.

Only where a scope asks for it: a first look has found another number in a guard.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from flashlight import _flashlight

_DEPTH = 40  # of formulas
_plain = float.__pos__  # a float of that class alone


class FollowedNumbers:
    """Watches this thread while it is entered, if the scope around wants to know."""

    def __init__(self) -> None:
        self.mode = None

    def __enter__(self) -> "FollowedNumbers":
        if _flashlight.follows_numbers():
            self.mode = _Follow()
            self.mode.__enter__()
            _math.enter()
        return self

    def tell(self) -> None:
        """Tells the scope what was given, but for numbers that are still alive: the program keeps
        them, as its result at the least."""
        if self.mode is not None:
            _flashlight.give_numbers(self.mode.log.told())

    def __exit__(self, *_) -> None:
        if self.mode is not None:
            _math.leave()
            self.mode.__exit__(None, None, None)
            self.mode.log.open = False


class _Log:
    """Of one run."""

    def __init__(self) -> None:
        self.open = True
        self.numbers: list[weakref.ref] = []
        self.escaped: set[str] = set()  # names of reads
        self.given: list[tuple[int, int, float, _Formula]] = []

    def told(self) -> list[tuple[int, int, float, str]]:
        for reference in self.numbers:
            if (number := reference()) is not None:
                number._escape()
        # What follows from a read that is a guard is fixed, and so is what else it follows from.
        for formula in self._until_stable():
            self.escaped |= formula.reads
        return [(begin, end, value, formula.text) for begin, end, value, formula in self.given
                if not formula.reads & self.escaped]

    def _until_stable(self) -> Iterator[_Formula]:
        before = -1
        while before != len(self.escaped):
            before = len(self.escaped)
            yield from (formula for *_, formula in self.given if formula.reads & self.escaped)


class _Formula:
    __slots__ = ("text", "reads", "depth")

    def __init__(self, text: str, reads: frozenset, depth: int):
        self.text, self.reads, self.depth = text, reads, depth


class _Number(float):
    """A float that a program read of a tensor, or computed of such."""

    __slots__ = ("_log", "_formula", "__weakref__")

    def __new__(cls, value: float, log: _Log, formula: _Formula) -> "_Number":
        number = float.__new__(cls, value)
        number._log, number._formula = log, formula
        log.numbers.append(weakref.ref(number))
        return number

    def _escape(self) -> None:
        self._log.escaped |= self._formula.reads

    def _given(self, value: Any, text: str, *parts: _Formula) -> Any:
        """`value`, which was computed as the text says."""
        depth = 1 + max(part.depth for part in parts)
        if type(value) is float and math.isfinite(value) and depth <= _DEPTH and self._log.open:
            reads = frozenset().union(*(part.reads for part in parts))
            return _Number(value, self._log, _Formula(text, reads, depth))
        self._escape()
        return value


def _formula_of(number: Any) -> _Formula | None:
    if type(number) is _Number:
        return number._formula
    if type(number) is int and abs(number) <= 2**53 or type(number) is float:
        value = float(number)
        if math.isfinite(value):
            return _Formula(f"({value!r})", frozenset(), 0)
    return None


def _binary(name: str, form: str, swapped: bool = False):
    compute = getattr(float, name)

    def method(self, other, *modulo):
        formula = None if modulo else _formula_of(other)
        value = compute(_plain(self), _plain(other) if type(other) is _Number else other, *modulo)
        if value is NotImplemented:  # a tensor: its operator sees the number
            return value
        if formula is None:
            self._escape()
            return value
        mine = self._formula
        left, right = (formula, mine) if swapped else (mine, formula)
        return self._given(value, form.format(left.text, right.text), left, right)

    return method


def _escaping(name: str):
    compute = getattr(float, name)

    def method(self, *arguments):
        self._escape()
        for other in arguments:
            if type(other) is _Number:
                other._escape()
        return compute(_plain(self), *(_plain(a) if type(a) is _Number else a for a in arguments))

    return method


for _name, _form in {"add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})",
                     "truediv": "({} / {})", "pow": "pow({}, {})"}.items():
    setattr(_Number, f"__{_name}__", _binary(f"__{_name}__", _form))
    setattr(_Number, f"__r{_name}__", _binary(f"__r{_name}__", _form, swapped=True))
_Number.__neg__ = lambda self: self._given(-_plain(self), f"(-({self._formula.text}))", self._formula)
_Number.__pos__ = lambda self: self
for _name in ("__abs__ __bool__ __ceil__ __divmod__ __eq__ __float__ __floor__ __floordiv__ __format__ "
              "__ge__ __getnewargs__ __gt__ __hash__ __int__ __le__ __lt__ __mod__ __ne__ __rdivmod__ "
              "__repr__ __rfloordiv__ __rmod__ __round__ __str__ __trunc__ as_integer_ratio conjugate "
              "hex is_integer").split():
    setattr(_Number, _name, _escaping(_name))


def _reduced(self, *_):
    self._escape()
    return float, (_plain(self),)


_Number.__reduce__ = _Number.__reduce_ex__ = _reduced
_Number.real = property(lambda self: self)


class _Follow(TorchFunctionMode):
    """Sees what is read, and which numbers are handed to torch."""

    def __init__(self) -> None:
        super().__init__()
        self.log = _Log()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.item:
            return self._read(function, args, kwargs)
        if (key := _READS.get(getattr(function, "__name__", ""))) and _is_read(kwargs.get(key)):
            kwargs = kwargs | {key: self._read(torch.Tensor.item, (kwargs[key],), {})}
        numbers = [number for value in (*args, *kwargs.values()) for number in _numbers_in(value)]
        if not numbers:
            return function(*args, **kwargs)
        begin = _flashlight.record_count()
        result = function(*args, **kwargs)
        end = _flashlight.record_count()
        for number in numbers:
            self.log.given.append((begin, end, _plain(number), number._formula))
        return result

    def _read(self, function, args, kwargs):
        begin = _flashlight.record_count()
        value = function(*args, **kwargs)
        record = _flashlight.last_read()
        if type(value) is not float or record is None or record < begin:
            return value
        name = f"read_{record}"
        return _Number(value, self.log, _Formula(name, frozenset([name]), 0))


# Functions that take a number by this name, and read it where a tensor is given, as
# `addcdiv_(…, value=-rate)` does in an optimizer whose rate is a tensor.
_READS = {name + ending: key for names, key in [(("addcdiv", "addcmul"), "value"), (("add", "sub"), "alpha")]
          for name in names for ending in ("", "_")}


def _is_read(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 0 and not value.requires_grad


def _numbers_in(value: Any) -> list[_Number]:
    if type(value) is _Number:
        return [value]
    if type(value) in (list, tuple):
        return [number for item in value for number in _numbers_in(item)]
    if type(value) is dict:
        return [number for item in value.values() for number in _numbers_in(item)]
    return []


class _Math:
    """The functions of `math` while somebody follows, which would take the plain float that is in ours: a root
    goes on as a formula, all others take the number back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entered = 0

    def enter(self) -> None:
        with self.lock:
            if self.entered == 0:
                self.originals = {name: value for name, value in vars(math).items() if callable(value)}
                for name, original in self.originals.items():
                    setattr(math, name, self.root(original) if name == "sqrt" else self.escaping(original))
            self.entered += 1

    def leave(self) -> None:
        with self.lock:
            self.entered -= 1
            if self.entered == 0:
                for name, original in self.originals.items():
                    setattr(math, name, original)

    @staticmethod
    def root(original):
        def sqrt(x, /):
            if type(x) is not _Number:
                return original(x)
            return x._given(original(_plain(x)), f"sqrt({x._formula.text})", x._formula)

        return sqrt

    @staticmethod
    def escaping(original):
        def function(*arguments, **named):
            for number in _numbers_in([*arguments, named]):
                number._escape()
            return original(*arguments, **named)

        return functools.wraps(original)(function)


_math = _Math()
