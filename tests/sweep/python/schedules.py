"""Training loops: schedules, accumulation, clipping."""

import torch
from torch import nn
from torch.optim import lr_scheduler

from registry import Case, case, gradients_of, rows, tensors_of


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def scheduled(make_scheduler, make_optimizer=None, inside=True, warm=0):
    """A training step with a schedule that runs inside of the step, or between the calls."""
    model = network()
    optimizer = (make_optimizer or (lambda p: torch.optim.SGD(p, lr=0.1)))(model.parameters())
    scheduler = make_scheduler(optimizer)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if inside:
            scheduler.step()
        return loss.detach()

    def between(call):
        if call > 0 and not inside:
            scheduler.step()

    for x in rows(warm, seed=3):
        step(x)
    return Case(step, rows(20), state=lambda: tensors_of(model, optimizer), before=between)


def adam_with_tensor_rate(parameters):
    return torch.optim.Adam(parameters, lr=torch.tensor(0.01), foreach=False)


# Rates that differ in each step: right if they are followed, else refused.
SCHEDULES = {
    "exponential": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "linear": lambda o: lr_scheduler.LinearLR(o, total_iters=30),
    "lambda": lambda o: lr_scheduler.LambdaLR(o, lambda count: 1 / (1 + count)),
    "every_step": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
}
for _name, _make in SCHEDULES.items():
    case(f"schedules.{_name}.inside", expect="either")(lambda make=_make: scheduled(make))
    case(f"schedules.{_name}.between", expect="either")(
        lambda make=_make: scheduled(make, inside=False))


@case("schedules.one_cycle_adam", expect="either")
def one_cycle_adam():
    """Changes the rate and Adam's beta, both numbers of the program."""
    return scheduled(lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=60),
                     lambda p: torch.optim.Adam(p, lr=0.01), warm=2)


@case("schedules.tensor_rate", expect="either")
def tensor_rate():
    """The rate is a tensor that the schedule fills in place, with numbers of its own."""
    return scheduled(lambda o: lr_scheduler.ExponentialLR(o, 0.9), adam_with_tensor_rate)


@case("schedules.step_every_five", expect="cannot see")
def step_every_five():
    return scheduled(lambda o: lr_scheduler.StepLR(o, 5, 0.5))


@case("schedules.step_every_two", expect="cannot see")
def step_every_two():
    return scheduled(lambda o: lr_scheduler.StepLR(o, 2, 0.5), inside=False)


@case("schedules.plateau", expect="either")
def plateau():
    """Asks for the loss as a number in each step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(model))


def accumulating(every):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    count = 0

    def step(x):
        nonlocal count
        loss = model(x).square().mean() / every
        loss.backward()
        count += 1
        if count % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(model))


def left_gradients(warm=0, prepare=lambda model: None, update=lambda model: None):
    """A step whose gradients its caller reads, to clip them or to run an optimizer of its own."""
    model = network()

    def step(x):
        prepare(model)
        loss = model(x).square().mean()
        loss.backward()
        update(model)
        return loss.detach()

    for x in rows(warm, seed=3):
        step(x)
    return Case(step, rows(20), state=lambda: tensors_of(model) + gradients_of(model))


@case("schedules.accumulation_without_update.first", expect="either")
def accumulation_without_update():
    # The first call makes the gradients, and the others add to them.
    return left_gradients()


@case("schedules.accumulation_without_update.later")
def accumulation_without_update_later():
    return left_gradients(warm=2)


@case("schedules.accumulation_without_zero_grad")
def accumulation_without_zero_grad():
    """An optimizer that never forgets a gradient."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(model))


@case("schedules.gradients_left_zeroed")
def gradients_left_zeroed():
    return left_gradients(warm=1, prepare=lambda m: m.zero_grad(set_to_none=False))


@case("schedules.gradients_left_anew", expect="either")
def gradients_left_anew():
    # Each call makes other tensors: a replay rebinds `.grad`, or says that it cannot.
    return left_gradients(warm=1, prepare=lambda m: m.zero_grad(set_to_none=True))


@case("schedules.gradients_scaled_in_place")
def gradients_scaled_in_place():
    def halve(model):
        for parameter in model.parameters():
            parameter.grad.mul_(0.5)

    return left_gradients(warm=1, update=halve)


@case("schedules.optimizer_outside", expect="either")
def optimizer_outside():
    """The step computes gradients; the optimizer runs between the calls, and no capture has it."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    def between(call):
        optimizer.step()
        optimizer.zero_grad()

    return Case(step, rows(20), state=lambda: tensors_of(model), before=between)


@case("schedules.micro_batches_inside")
def micro_batches_inside():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        for part in x.chunk(2):
            (model(part).square().mean() / 2).backward()
        optimizer.step()

    return Case(step, rows(20), state=lambda: tensors_of(model))


@case("schedules.update_every_two", expect="refused")
def update_every_two():
    """Planted: the second call does what the first one did not."""
    return accumulating(2)


@case("schedules.update_every_four", expect="cannot see")
def update_every_four():
    return accumulating(4)


def clipped(clip):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(10 * x).square().mean()
        loss.backward()
        norm = clip(list(model.parameters()))
        optimizer.step()
        return loss.detach(), norm

    return Case(step, rows(20), state=lambda: tensors_of(model))


@case("schedules.clip_grad_norm")
def clip_grad_norm():
    return clipped(lambda p: nn.utils.clip_grad_norm_(p, 1.0))


@case("schedules.clip_grad_norm_loop")
def clip_grad_norm_loop():
    return clipped(lambda p: nn.utils.clip_grad_norm_(p, 1.0, foreach=False))


@case("schedules.clip_grad_value")
def clip_grad_value():
    return clipped(lambda p: nn.utils.clip_grad_value_(p, 0.05))


@case("schedules.clip_by_number", expect="either")
def clip_by_number():
    """Clips by a factor that left as a number and came back."""

    def clip(parameters):
        norm = torch.stack([p.grad.norm() for p in parameters]).norm().item()
        for parameter in parameters:
            parameter.grad.mul_(min(1.0, 1.0 / norm))
        return norm

    return clipped(clip)
