"""The program that is captured: how it is called on tensors alone, what its tensors are called, and
which module runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules import module as _module

from flashlight import _flashlight
from flashlight.structure import Structure, flatten


def modules_of(program: Callable) -> dict[str, torch.nn.Module]:
    """Modules the program uses, by the name that stands before their parameters': the program
    itself or the one it is a method of (no name), and those a function finds around it."""
    if isinstance(program, torch.nn.Module):
        return {"": program}
    owner = getattr(program, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return {"": owner}
    if not inspect.isfunction(inspect.unwrap(program)):
        return {}
    variables = inspect.getclosurevars(inspect.unwrap(program))
    found = {**variables.globals, **variables.nonlocals}
    return {name: value for name, value in found.items() if isinstance(value, torch.nn.Module)}


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
        self.results: Structure | None = None  # of the last run

    def __call__(self, tensors: list[torch.Tensor]) -> tuple[list, str]:
        positional, named = self.arguments.unflatten(tensors)
        with _ModuleScopes(self.modules):
            result: Any = self.function(*positional, **named)
        flat, self.results = flatten(result, "result")
        return flat, self.results.text()


class _ModuleScopes:
    """Tells the tracer which module runs."""

    def __init__(self, modules: dict[str, torch.nn.Module]):
        self.paths = {}
        for prefix, module in modules.items():
            for path, child in module.named_modules(prefix=prefix):
                self.paths.setdefault(id(child), path)
        self.entered: list[bool] = []

    def __enter__(self):
        self.handles = [
            _module.register_module_forward_pre_hook(self._enter),
            _module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def __exit__(self, *_):
        for handle in self.handles:
            handle.remove()
        for entered in self.entered:  # of modules that threw
            if entered:
                _flashlight.leave_module()

    def _enter(self, module, _inputs):
        path = self.paths.get(id(module))
        self.entered.append(path is not None)
        if path is not None:
            _flashlight.enter_module(path)

    def _leave(self, _module, _inputs, _output):
        if self.entered and self.entered.pop():
            _flashlight.leave_module()
