"""Averages of weights, two models, mixed precision, and programs that change with their age."""

import copy

import torch
from torch import nn
from torch.optim import swa_utils

from registry import Case, case, rows, tensors_of


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def averaged(update):
    model = network()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        update(average, model)
        return average(x).detach()

    return Case(step, rows(20), state=lambda: tensors_of(model, *average.parameters()))


@case("averages.ema_in_place")
def ema_in_place():
    @torch.no_grad()
    def update(average, model):
        for old, new in zip(average.parameters(), model.parameters()):
            old.lerp_(new, 0.1)

    return averaged(update)


@case("averages.ema_data")
def ema_data():
    def update(average, model):
        for old, new in zip(average.parameters(), model.parameters()):
            old.data.mul_(0.9).add_(new.data, alpha=0.1)

    return averaged(update)


@case("averages.ema_load_state_dict")
def ema_load_state_dict():
    def update(average, model):
        old, new = average.state_dict(), model.state_dict()
        average.load_state_dict({k: 0.9 * old[k] + 0.1 * new[k] for k in old})

    return averaged(update)


@case("averages.ema_rebinding", expect="either")
def ema_rebinding():
    """The averages are new tensors in each step, held by a dict."""
    model = nn.Linear(4, 2)
    averages = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        for name, parameter in model.named_parameters():
            averages[name] = 0.9 * averages[name] + 0.1 * parameter.detach()
        return averages["weight"].sum()

    return Case(step, rows(20), state=lambda: tensors_of(model))


@case("averages.averaged_model", expect="either")
def averaged_model():
    """The first update copies, the others average: a branch on a tensor that counts."""
    model = network()
    average = swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(model, average))


@case("averages.averaged_model_ema", expect="either")
def averaged_model_ema():
    model = network()
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))

    def step(x):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(x.mean())
        average.update_parameters(model)
        return average(x).detach()

    return Case(step, rows(20), state=lambda: tensors_of(model, average))


@case("averages.gan")
def gan():
    """Two models, two optimizers, and random numbers drawn inside."""
    maker, critic = network(), nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
    make_better = torch.optim.Adam(maker.parameters(), lr=0.01, betas=(0.5, 0.9))
    judge_better = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    entropy = nn.functional.binary_cross_entropy_with_logits

    def step(real):
        made = maker(torch.randn(4, 4))
        judge_better.zero_grad()
        right, wrong = critic(real), critic(made.detach())
        loss = entropy(right, torch.ones_like(right)) + entropy(wrong, torch.zeros_like(wrong))
        loss.backward()
        judge_better.step()
        make_better.zero_grad()
        wrong = critic(made)
        made_loss = entropy(wrong, torch.ones_like(wrong))
        made_loss.backward()
        make_better.step()
        return loss.detach(), made_loss.detach()

    return Case(step, rows(20, 4, 2), state=lambda: tensors_of(maker, critic, judge_better))


@case("averages.gan_every_other", expect="refused")
def gan_every_other():
    """Planted: one of the two is trained in every other call only."""
    maker, critic = nn.Linear(4, 2), nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (maker, critic)]
    count = 0

    def step(x):
        nonlocal count
        optimizer = optimizers[count % 2]
        count += 1
        optimizer.zero_grad()
        loss = critic(maker(x)).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(*maker.parameters(), *critic.parameters()))


@case("averages.autocast")
def autocast():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(model, optimizer))


@case("averages.grad_scaler", expect="either")
def grad_scaler():
    """Skips the step when it finds an infinity, and doubles its scale in every third step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)

    def step(x):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(*model.parameters()))


@case("averages.grad_scaler_infinity", expect="either")
def grad_scaler_infinity():
    """An infinity in the fifth input."""
    result = grad_scaler()
    result.inputs[5].fill_(1e30)
    return result


@case("averages.warm_up_by_hand", expect="refused")
def warm_up_by_hand():
    """Planted: the rate is a function of a count in a closure, as many write it."""
    weight, count = torch.zeros(4, 4), [0]

    def step(x):
        count[0] += 1
        weight.sub_(x, alpha=0.1 * min(1.0, count[0] / 10) ** 1.5)
        return weight.sum()

    return Case(step, rows(20), state=lambda: [weight])


@case("averages.early_stop", expect="cannot see")
def early_stop():
    """Trains in the first ten calls only."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = [0]

    def step(x):
        loss = model(x).square().mean()
        count[0] += 1
        if count[0] <= 10:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(*model.parameters()))


@case("averages.hundred_steps")
def hundred_steps():
    """Adam for a hundred steps, from the first one."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, rows(100), state=lambda: tensors_of(model, optimizer))
