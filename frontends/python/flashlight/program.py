"""The program that is captured: how it is called on tensors alone, what its tensors are called, and
which module runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as _module
from torch.optim.lr_scheduler import LRScheduler

from composit import Error

from flashlight import _flashlight
from flashlight.attributes import Change, Snapshot
from flashlight.followed_numbers import FollowedNumbers
from flashlight.host_memory import HostMemory, Read
from flashlight.modes import RecordedModes
from flashlight.structure import Structure, flatten
from flashlight.watch import Rates, Watch


def modules_of(program: Callable) -> dict[str, torch.nn.Module]:
    """Modules the program uses, by the name that stands before their parameters': the program
    itself or the one it is a method of (no name), and those that a function, or a function it
    calls, finds around it under their names there. The first of a name keeps it."""
    if isinstance(program, torch.nn.Module):
        return {"": program}
    owner = getattr(program, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return {"": owner}
    search = _ModuleSearch(_package(program))
    search.look_around(program)
    return search.modules


def generators_of(program: Callable, modules: dict[str, torch.nn.Module]) -> list[torch.Generator]:
    """Random generators that the program finds where it finds its modules, and theirs."""
    search = _ModuleSearch(_package(program))
    search.look_around(program)
    for module in modules.values():
        for child in module.modules():
            search.add_generators(vars(child))
    return list(search.generators.values())


def optimizers_of(program: Callable) -> list[torch.optim.Optimizer]:
    """Optimizers that the program finds where it finds its modules."""
    return list(_searched(program).optimizers.values())


def schedulers_of(program: Callable) -> list[LRScheduler]:
    """Schedulers of optimizers' rates, found likewise."""
    return list(_searched(program).schedulers.values())


def _searched(program: Callable) -> "_ModuleSearch":
    search = _ModuleSearch(_package(program))
    search.look_around(program)
    return search


class _ModuleSearch:
    """Among what functions hold: variables around them, their object's attributes, arguments that
    are bound already. Globals are those of the program's own package: what a library does with its
    own says nothing of this program."""

    def __init__(self, package: str):
        self.package = package
        self.modules: dict[str, torch.nn.Module] = {}
        self.generators: dict[int, torch.Generator] = {}
        self.optimizers: dict[int, torch.optim.Optimizer] = {}
        self.schedulers: dict[int, LRScheduler] = {}
        self.seen: set[int] = set()  # functions and objects, all held by the program

    def look_around(self, function: Any) -> None:
        if isinstance(function, functools.partial):
            self.look_at(dict(enumerate(function.args)) | function.keywords)
            function = function.func
        own = _package(function) == self.package
        owner = getattr(function, "__self__", None)
        shared = inspect.ismodule(owner) or inspect.isclass(owner) and not own
        if hasattr(owner, "__dict__") and not shared and self._is_new(owner):
            self.look_at(vars(owner))
        function = inspect.unwrap(getattr(function, "__func__", function))
        if inspect.isfunction(function) and self._is_new(function):
            variables = inspect.getclosurevars(function)
            self.look_at((variables.globals if own else {}) | variables.nonlocals)

    def add_generators(self, variables: dict) -> None:
        for value in variables.values():
            if isinstance(value, torch.Generator) and value is not torch.default_generator:
                self.generators.setdefault(id(value), value)

    def look_at(self, variables: dict) -> None:
        self.add_generators(variables)
        for name, value in variables.items():
            owner = getattr(value, "__self__", None)
            for found in (value, owner):  # optimizer, step = optimizer.step
                if isinstance(found, torch.optim.Optimizer):
                    self.optimizers.setdefault(id(found), found)
                if isinstance(found, LRScheduler):
                    self.schedulers.setdefault(id(found), found)
            if isinstance(owner, torch.nn.Module):  # encode = model.encode
                value = owner
            if isinstance(value, torch.nn.Module):
                if not any(value is known for known in self.modules.values()):
                    self.modules.setdefault(str(name), value)
            elif inspect.isroutine(value) or isinstance(value, functools.partial):
                self.look_around(value)

    def _is_new(self, value: Any) -> bool:
        new = id(value) not in self.seen
        self.seen.add(id(value))
        return new


def _package(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def named_tensors(modules: dict[str, torch.nn.Module]) -> list[tuple[str, torch.Tensor, str]]:
    """Parameters and buffers of modules as name, tensor, kind; tied ones under every name."""
    named = []
    for prefix, module in modules.items():
        for name, tensor in module.named_parameters(prefix, remove_duplicate=False):
            named.append((name, tensor, "parameter"))
        for name, tensor in module.named_buffers(prefix, remove_duplicate=False):
            named.append((name, tensor, "buffer"))
    return named


class Program:
    """Called with a list of tensors, runs what was captured on them."""

    def __init__(self, function: Callable, arguments: Structure, modules: dict):
        self.function = function
        self.arguments = arguments
        self.modules = modules
        # These belong to the last run:
        self.results: Structure | None = None
        self.changes: list[Change] = []  # of modules and variables around it
        # Reads on the host that no guard watches. A second run that agrees on other inputs
        # shows that nothing depends on it; else: host_memory.refuse_large_reads.
        self.large_reads: list[Read] = []
        # The modules as the last run left them. A run of modules that were changed since (by
        # `check`) does not make the change forgotten.
        self.watch: Watch | None = None
        # What its optimizers are told by numbers, as all runs left it.
        self.rates: Rates | None = None

    def named(self) -> list[tuple[str, torch.Tensor, str]]:
        """What stands under the names of the modules now."""
        return named_tensors(self.modules)

    def __call__(self, tensors: list[torch.Tensor]) -> tuple[list, str]:
        positional, named = self.arguments.unflatten(tensors)
        changed = self.changed()
        before = Snapshot(self.modules, self.function)
        epochs = [(scheduler, scheduler.last_epoch) for scheduler in schedulers_of(self.function)]
        _flashlight.watch_generators(generators_of(self.function, self.modules))
        with (_ModuleScopes(self.modules), RecordedModes(), HostMemory() as memory,
              FollowedNumbers() as numbers):
            try:
                result = self.run(positional, named)
                numbers.tell()
            except RuntimeError as error:  # what the tracer refuses comes back through torch
                if str(error).startswith("[trace] "):
                    raise Error(str(error)) from error
                raise
        for scheduler, epoch in epochs:
            if scheduler.last_epoch != epoch:
                self.refuse(f"[capture] the program steps a scheduler of rates ({type(scheduler).__name__}), and a "
                            "replay would not; call its step() behind the capture, and pass the rate as a tensor "
                            "(group[\"lr\"] = rate), or make a family of it")
        self.large_reads = memory.large_reads
        self.changes = before.changes()
        if changed is None:
            self.watch = Watch(self.modules)
        self.rates = Rates(optimizers_of(self.function), self.rates)
        flat, self.results = self.flat(result)
        return flat, self.results.text()

    def run(self, positional: tuple, named: dict) -> Any:
        return self.function(*positional, **named)

    def refuse(self, why: str) -> None:
        """Of a run that was recorded, and that no replay does."""
        raise Error(why)

    def flat(self, result: Any) -> tuple[list, Structure]:
        return flatten(result, "result")

    def changed(self) -> str | None:
        """What was done to the modules since the program ran; None where nothing was."""
        return self.watch and self.watch.changed()


class _ModuleScopes:
    """Tells the tracer which module runs."""

    def __init__(self, modules: dict[str, torch.nn.Module]):
        self.modules = modules

    def __enter__(self):
        self.hooks = _flashlight.ModuleHooks()
        for prefix, module in self.modules.items():
            for path, child in module.named_modules(prefix=prefix):
                self.hooks.name(child, path)
        self.handles = [
            _module.register_module_forward_pre_hook(self.hooks.enter),
            _module.register_module_forward_hook(self.hooks.leave, always_call=True),
        ]

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()
        self.hooks.leave_all()
