"""Is a program still what it was when it was captured? Its modules' parameters, buffers and
submodules by identity, parameters' types and whether they are trained, and each module's mode.

    watch = Watch(modules)
    model.eval()
    watch.changed()         # "module '' was in training mode and is in evaluation mode"

Asked before each call of a capture: all is compared by a few calls of C, and what differs is looked
for only then. What is written into a tensor (load_state_dict, `p.data = …` of the same type) changes
nothing here.
"""

from __future__ import annotations

import itertools
import operator

import torch

_WORDS = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
_mode_of = operator.itemgetter("training")
_type_of = operator.attrgetter("dtype", "requires_grad")


class Watch:
    """Of all modules in `modules`, by the names in front of their parameters'."""

    def __init__(self, modules: dict[str, torch.nn.Module]):
        self._paths: list[str] = []
        self._around: list[dict] = []  # per module
        self._tables: list[dict] = []  # three per module
        seen: set = set()
        for prefix, module in modules.items():
            for path, child in module.named_modules(seen, prefix):
                if not isinstance(child, torch.jit.ScriptModule):  # C++ holds what it has
                    self._paths.append(path)
                    self._around.append(vars(child))
                    self._tables += [vars(child)[word] for word in _WORDS]
        self._entries = [dict(table) for table in self._tables]  # as they were; holds them
        self._tensors = [tensor for table in self._entries[::3] for tensor in table.values()
                         if tensor is not None]
        self._views = [table.values() for table in self._tables]
        self._values = list(itertools.chain.from_iterable(self._views))
        self._modes, self._sizes, self._types = self._now()

    def _now(self) -> tuple[list, list, list]:
        return (list(map(_mode_of, self._around)), list(map(len, self._tables)),
                list(map(_type_of, self._tensors)))

    def changed(self) -> str | None:
        """The first difference there is; None where there is none."""
        modes, sizes, types = self._now()
        if modes != self._modes:
            return self._changed_mode(modes)
        values = itertools.chain.from_iterable(self._views)
        if sizes != self._sizes or not all(map(operator.is_, values, self._values)):
            return self._changed_entry()
        if types != self._types:
            return self._changed_type(types)
        return None

    def _changed_mode(self, modes: list) -> str:
        [path, was, now] = next(each for each in zip(self._paths, self._modes, modes)
                                if each[1] != each[2])
        return f"module '{path}' was in {_mode(was)} mode and is in {_mode(now)} mode"

    def _changed_entry(self) -> str:
        for path, word, before, now in self._each_table():
            for key in before | now:
                name = f"{_WORDS[word]} '{path}.{key}'".replace("'.", "'")
                if key not in now:
                    return f"{name} was removed"
                if key not in before:
                    return f"{name} was added"
                if now[key] is not before[key]:
                    return f"{name} was replaced"
        return "the order of a module's parameters, buffers or modules was changed"

    def _each_table(self):
        words = itertools.product(self._paths, _WORDS)
        for (path, word), before, now in zip(words, self._entries, self._tables):
            yield path, word, before, now

    def _changed_type(self, types: list) -> str:
        place = next(i for i, (was, now) in enumerate(zip(self._types, types)) if was != now)
        names = [f"{path}.{key}".lstrip(".") for path, word, before, _ in self._each_table()
                 for key, tensor in before.items()
                 if word == "_parameters" and tensor is not None]
        (dtype, trained), (dtype_now, trained_now) = self._types[place], types[place]
        if dtype != dtype_now:
            return f"parameter '{names[place]}' was {_short(dtype)} and is {_short(dtype_now)}"
        return f"parameter '{names[place]}' was {_state(trained)} and is {_state(trained_now)}"


class Rates:
    """Numbers in the groups of optimizers: rates, momenta, decays. A capture that is confirmed has
    them as constants, if no run found another one there than the run `before`."""

    def __init__(self, optimizers: list[torch.optim.Optimizer], before: "Rates | None"):
        now = {(id(group), key): (group, key, value)
               for optimizer in optimizers for group in optimizer.param_groups
               for key, value in group.items() if _is_rate(value)}
        self._varying = set() if before is None else before._varying | {
            place for place, (_, _, value) in before._numbers.items()
            if place in now and now[place][2] != value}
        self._numbers = {place: entry for place, entry in now.items() if place not in self._varying}

    def changed(self) -> str | None:
        """The first that is another one now; None where there is none."""
        for group, key, value in self._numbers.values():
            now = group.get(key)
            if now is not value and _is_rate(now) and now != value:
                return f"'{key}' of its optimizer was {value} and is {now}"
        return None


def _is_rate(value) -> bool:
    numbers = value if isinstance(value, tuple) else (value,)
    return all(isinstance(number, (int, float)) for number in numbers) and value != ()


def _mode(training: bool) -> str:
    return "training" if training else "evaluation"


def _state(trained: bool) -> str:
    return "trained" if trained else "frozen"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
