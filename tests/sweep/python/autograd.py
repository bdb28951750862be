"""Backward passes, hooks, custom functions, transforms, exceptions."""

import contextlib
import copy
import functools
import logging

import torch
from torch import nn
from torch.utils import checkpoint

from registry import Case, case, rows, tensors_of

CHANGES = "number|constant|differ|another|other|changes|outside|not the same"


def trained(prepare, calls=8):
    """A step that leaves gradients; `prepare` puts hooks on the model."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    prepare(model)

    def step(x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=0.1)
        return loss.detach()

    return Case(step, rows(calls), state=lambda: tensors_of(*model.parameters()))


@case("autograd.forward_hook_changes")
def forward_hook_changes():
    return trained(lambda m: m[0].register_forward_hook(lambda module, args, out: out * 2))


@case("autograd.forward_pre_hook_changes")
def forward_pre_hook_changes():
    return trained(lambda m: m[2].register_forward_pre_hook(lambda module, args: args[0].relu()))


@case("autograd.full_backward_hook")
def full_backward_hook():
    def scale(module, inputs, outputs):
        return tuple(g if g is None else g * 3 for g in inputs)

    return trained(lambda m: m[2].register_full_backward_hook(scale))


@case("autograd.tensor_hook_clips")
def tensor_hook_clips():
    return trained(lambda m: m[0].weight.register_hook(lambda g: g.clamp(-0.01, 0.01)))


@case("autograd.tensor_hook_noise")
def tensor_hook_noise():
    """Noise in the backward pass, from torch's generator."""
    return trained(lambda m: m[0].weight.register_hook(lambda g: g + torch.randn_like(g)))


@case("autograd.hook_keeps_statistics")
def hook_keeps_statistics():
    """A hook that sums activations in a tensor of its own."""
    total = torch.zeros(4)

    def add(module, args, out):
        total.add_(out.detach().mean(0))

    result = trained(lambda m: m[0].register_forward_hook(add), calls=20)
    parameters = result.state
    result.state = lambda: [*parameters(), total]
    return result


@case("autograd.hook_keeps_activation")
def hook_keeps_activation():
    """Remembers an activation under a name, for the loss of the same step."""
    model, kept = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)), {}
    model[1].register_forward_hook(lambda module, args, out: kept.update(hidden=out))

    def step(x):
        return model(x).sum() + kept["hidden"].square().sum()

    return Case(step, rows(5))


@case("autograd.hook_counts", expect="refused", error=CHANGES)
def hook_counts():
    """Planted: a hook scales by the number of its calls."""
    calls = [0]

    def scale(module, args, out):
        calls[0] += 1
        return out / calls[0]

    return trained(lambda m: m[0].register_forward_hook(scale))


@case("autograd.gradient_hook_counts", expect="refused", error=CHANGES)
def gradient_hook_counts():
    """Planted: the same in the backward pass."""
    calls = [0]

    def scale(gradient):
        calls[0] += 1
        return gradient / calls[0]

    return trained(lambda m: m[0].weight.register_hook(scale))


@case("autograd.hook_removes_itself", expect="either")
def hook_removes_itself():
    """A hook for the first call only."""
    # The first call differs from all others, which are alike.
    handles = []

    def once(module, args, out):
        handles.pop().remove()
        return out * 0

    return trained(lambda m: handles.append(m[2].register_forward_hook(once)))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class StraightThrough(torch.autograd.Function):
    """Saves nothing."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class CountedScale(torch.autograd.Function):
    """Its backward pass depends on how often it ran."""

    count = 0

    @staticmethod
    def forward(ctx, x):
        CountedScale.count += 1
        ctx.scale = 1.0 / CountedScale.count
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.scale


def with_function(function):
    model = nn.Linear(4, 2)

    def step(x):
        model.zero_grad()
        loss = function.apply(model(x)).square().sum()
        loss.backward()
        with torch.no_grad():
            model.weight.sub_(model.weight.grad, alpha=0.01)
        return loss.detach()

    return Case(step, rows(8), state=lambda: [model.weight])


@case("autograd.function_saves")
def function_saves():
    return with_function(Square)


@case("autograd.function_saves_nothing")
def function_saves_nothing():
    return with_function(StraightThrough)


@case("autograd.function_counts", expect="refused", error=CHANGES)
def function_counts():
    """Planted: the gradient is scaled by a number that a class counts."""
    CountedScale.count = 0
    return with_function(CountedScale)


@case("autograd.gradient_of_gradient")
def gradient_of_gradient():
    """A penalty on the norm of a gradient."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 1))

    def step(x):
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        model.zero_grad()
        loss = (gradient.norm(dim=1) - 1).square().mean()
        loss.backward()
        with torch.no_grad():
            model[0].weight.sub_(model[0].weight.grad)
        return loss.detach()

    return Case(step, rows(8), state=lambda: tensors_of(*model.parameters()))


@case("autograd.retained_graph", expect="refused")
def retained_graph():
    """Planted: differentiates a loss that another call built, of a graph that is kept."""
    weight = torch.randn(4, requires_grad=True)
    kept = []

    def step(x):
        if not kept:
            kept.append((x @ weight).square().sum())
        (gradient,) = torch.autograd.grad(kept[0], weight, retain_graph=True)
        kept[0] = kept[0] + (x @ weight).sum()
        return gradient

    return Case(step, rows(8))


def checkpointed(use_reentrant, dropout=0.0):
    body = nn.Sequential(nn.Linear(4, 4), nn.Dropout(dropout), nn.Tanh())
    head = nn.Linear(4, 1)

    def step(x):
        body.zero_grad()
        y = checkpoint.checkpoint(body, x.requires_grad_(), use_reentrant=use_reentrant)
        loss = head(y).square().mean()
        loss.backward()
        with torch.no_grad():
            body[0].weight.sub_(body[0].weight.grad)
        return loss.detach()

    return Case(step, rows(8), state=lambda: [body[0].weight])


@case("autograd.checkpoint")
def checkpoint_():
    return checkpointed(False)


@case("autograd.checkpoint_reentrant")
def checkpoint_reentrant():
    return checkpointed(True)


@case("autograd.checkpoint_dropout", expect="either")
def checkpoint_dropout():
    """Puts the generator back to draw the same numbers twice."""
    return checkpointed(False, dropout=0.5)


@case("autograd.checkpoint_counts", expect="refused", error=CHANGES)
def checkpoint_counts():
    """Planted: what is computed again counts how often it was."""
    weight, calls = torch.ones(4, requires_grad=True), [0]

    def body(x):
        calls[0] += 1
        return (x * weight * calls[0]).sin()

    def step(x):
        weight.grad = None
        loss = checkpoint.checkpoint(body, x, use_reentrant=False).sum()
        loss.backward()
        return loss.detach(), weight.grad.clone()

    return Case(step, rows(6))


@case("autograd.func_grad", expect="either")
def func_grad():
    weight = torch.randn(4)
    return Case(torch.func.grad(lambda x: (x @ weight).tanh().sum()), rows(5))


@case("autograd.func_vmap", expect="either")
def func_vmap():
    return Case(torch.vmap(lambda row: row / row.norm()), rows(5))


@case("autograd.func_per_sample", expect="either")
def func_per_sample():
    """A gradient per sample, of a module that is called as a function."""
    model = nn.Linear(4, 2)
    parameters = dict(model.named_parameters())

    def loss(values, row):
        return torch.func.functional_call(model, values, (row,)).square().sum()

    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))
    return Case(lambda x: each(parameters, x)["weight"].detach(), rows(5))


@case("autograd.functional_call")
def functional_call():
    """Another weight by each call's arguments."""
    model = nn.Linear(4, 4)

    def step(x, weight):
        return torch.func.functional_call(model, {"weight": weight}, (x,))

    return Case(step, [(x, x + 1) for x in rows(5)])


@case("autograd.jacobian", expect="either")
def jacobian():
    return Case(lambda x: torch.autograd.functional.jacobian(lambda v: v.sin() @ v, x), rows(4))


@case("autograd.copied_in_step")
def copied_in_step():
    """Copies its module in each call, and computes with the copy."""
    model = nn.Linear(4, 4)

    def step(x):
        again = copy.deepcopy(model)
        with torch.no_grad():
            again.weight.add_(x)
        return again(x).detach()

    return Case(step, rows(5), state=lambda: tensors_of(model))


@case("autograd.exception_caught")
def exception_caught():
    """Tries what cannot be, catches the error, and goes on."""

    def step(x):
        y = x + 1
        try:
            return y @ torch.ones(3, 3)
        except RuntimeError:
            return y * 2

    return Case(step, rows(5))


@case("autograd.exception_after_write")
def exception_after_write():
    """Half of the work is done when the error comes, and stays done."""
    total = torch.zeros(4)

    def step(x):
        with contextlib.suppress(RuntimeError):
            total.add_(x.sum(0))
            total.add_(torch.ones(3))
        return total * 1

    return Case(step, rows(20), state=lambda: [total])


@case("autograd.exception_by_value", expect="either")
def exception_by_value():
    """Raises for an input with a negative sum; the trace's has a positive one."""

    def step(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return x.sqrt()

    return Case(step, [x.abs() if i != 3 else -x.abs() for i, x in enumerate(rows(6))])


@case("autograd.logging", expect="either")
def logging_():
    # Nobody can tell a number that is printed from one that is used.
    log = logging.getLogger("sweep")

    def step(x):
        y = x.softmax(0)
        log.info("%s", y)
        log.debug("%s", y.sum().item())
        return y

    return Case(step, rows(5))


@case("autograd.partial")
def partial():
    layer = nn.Linear(4, 4)
    return Case(functools.partial(nn.functional.linear, weight=layer.weight), rows(5))
