"""Programs on which tracers fail, registered by name.

    @case("optimizers.adam")                  # expect="right": captured, and right in every call
    def adam():                               # called anew for each run, after seeding
        model = nn.Linear(4, 4)
        optimizer = torch.optim.Adam(model.parameters())
        def step(x): ...
        return Case(step, rows(20), state=lambda: tensors_of(model, optimizer))

`expect` is "right"; "refused" (the message contains the pattern `error`), for planted wrong variants,
which may be right as well; "either" of both; "copies": right, but that results are copies where the
program gives its own state or argument (docs/promise.md); or "cannot see": equal in the first two
calls and different later, which nothing short of running the program every time finds.
"""

import dataclasses
import typing

import torch

EXPECTATIONS = ("right", "refused", "either", "copies", "cannot see")


@dataclasses.dataclass
class Case:
    """A program and what is done with it, the same in the eager and in the captured run."""

    step: typing.Callable
    inputs: list  # one per call: a tensor, or a tuple of arguments; call 0 is the trace
    state: typing.Callable[[], list] | None = None  # what to compare after each call
    before: typing.Callable[[int], None] | None = None  # called with the number of the call
    after: typing.Callable[[int, typing.Any], None] | None = None  # with the result, too
    keep: bool = False  # compares all earlier results again after each call
    repeatable: bool = True  # False: no two runs agree; right only if the program runs each time


@dataclasses.dataclass
class Registered:
    name: str
    build: typing.Callable[[], Case]
    expect: str
    error: str


CASES: dict[str, Registered] = {}


def case(name, expect="right", error=""):
    """Registers a function that builds a Case."""
    if expect not in EXPECTATIONS:
        raise ValueError(f"{name}: expect one of {EXPECTATIONS}, received {expect}")
    if name in CASES:
        raise ValueError(f"{name} is registered twice")

    def register(build):
        CASES[name] = Registered(name, build, expect, error)
        return build

    return register


def rows(calls=20, *shape, seed=7):
    """A random tensor per call."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*(shape or (4, 4)), generator=generator) for _ in range(calls)]


def tensors_of(*owners):
    """Parameters and buffers of modules, and the tensors in an optimizer's state."""
    found = []
    for owner in owners:
        if isinstance(owner, torch.nn.Module):
            found += list(owner.parameters()) + list(owner.buffers())
        elif isinstance(owner, torch.optim.Optimizer):
            for values in owner.state.values():
                found += [v for v in values.values() if isinstance(v, torch.Tensor)]
        else:
            found.append(owner)
    return found


def gradients_of(model):
    return [parameter.grad for parameter in model.parameters()]
