"""Training steps of every optimizer of torch, captured at their first step and at a later one."""

import torch
from torch import nn

from registry import Case, case, rows, tensors_of


def training(make_optimizer, warm=0, set_to_none=True, calls=20, model=None):
    """A training step; `warm` steps ran before the trace."""
    model = model or nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = make_optimizer(model.parameters())

    def step(x):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x in rows(warm, seed=3):
        step(x)
    return Case(step, rows(calls), state=lambda: tensors_of(model, optimizer))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd_dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "sgd_weight_decay_maximize": lambda p: torch.optim.SGD(
        p, lr=0.01, weight_decay=0.1, maximize=True),
    "sgd_foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "sgd_fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam_loop": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
    "adam_fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "adam_tensor_rate": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True, amsgrad=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "nadam_foreach": lambda p: torch.optim.NAdam(p, lr=0.01, foreach=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "adagrad_lr_decay": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adagrad_fused": lambda p: torch.optim.Adagrad(p, lr=0.1, fused=True),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.01, t0=5),
}
# Those with a state that their first step makes; SGD's fourth step does what its first one does.
LATER = ("sgd_momentum", "adam", "adam_amsgrad", "adam_foreach", "adam_fused", "adamw", "nadam",
         "radam", "adamax", "adagrad_lr_decay", "adadelta", "rmsprop_centered", "rprop", "asgd")


def first_and_later(name, make_optimizer):
    case(f"optimizers.{name}.first")(lambda: training(make_optimizer))
    if name in LATER:
        # RAdam's formula changes after its fifth step, so it is captured between.
        case(f"optimizers.{name}.later")(lambda: training(make_optimizer, warm=3))


for _name, _make in OPTIMIZERS.items():
    first_and_later(_name, _make)


@case("optimizers.adam_capturable", expect="either")
def adam_capturable():
    # torch refuses capturable steps on a CPU unless it compiles; other versions may run them.
    def make(parameters):
        optimizer = torch.optim.Adam(parameters, lr=0.01, foreach=False)
        optimizer.param_groups[0]["lr"] = torch.tensor(0.01)
        return optimizer

    return training(make, warm=1)


@case("optimizers.lbfgs", expect="either")
def lbfgs():
    # Its stopping tests are values of the tensors: guards that another input need not meet.
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=2)

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return Case(step, rows(8), state=lambda: tensors_of(model))


@case("optimizers.lbfgs_wolfe", expect="either")
def lbfgs_wolfe():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure).detach()

    return Case(step, rows(8), state=lambda: tensors_of(model))


@case("optimizers.sparse_adam", expect="either")
def sparse_adam():
    # The number of rows that a sparse gradient has depends on the values of the indices.
    table = nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(list(table.parameters()), lr=0.1)

    def step(indices):
        optimizer.zero_grad()
        loss = table(indices).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randperm(10, generator=generator)[:4] for _ in range(20)]
    return Case(step, inputs, state=lambda: [table.weight])


@case("optimizers.zero_grad_in_place")
def zero_grad_in_place():
    return training(OPTIMIZERS["sgd_momentum"], set_to_none=False)


@case("optimizers.zero_grad_in_place.later")
def zero_grad_in_place_later():
    return training(OPTIMIZERS["adam_foreach"], set_to_none=False, warm=2)


@case("optimizers.two_groups")
def two_groups():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def make(_):
        groups = [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}]
        return torch.optim.AdamW(groups, lr=0.01)

    return training(make, model=model)


@case("optimizers.step_hooks")
def step_hooks():
    """Decays weights in a hook after each step, as users of AdamW once did."""
    model = nn.Linear(4, 2)

    def make(parameters):
        optimizer = torch.optim.SGD(parameters, lr=0.1)

        @torch.no_grad()
        def decay(optimizer, args, kwargs):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.mul_(0.99)

        optimizer.register_step_post_hook(decay)
        return optimizer

    return training(make, model=model)


@case("optimizers.in_backward")
def in_backward():
    """The optimizer runs in hooks of the backward pass, a parameter each."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizers = {p: torch.optim.Adam([p], lr=0.01) for p in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(*model.parameters()))


class Lion(torch.optim.Optimizer):
    """One that torch does not have; its state is made in its first step."""

    def __init__(self, parameters, lr=0.01):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "average" not in state:
                    state["average"] = torch.zeros_like(parameter)
                update = state["average"].lerp(parameter.grad, 0.1).sign_()
                parameter.add_(update, alpha=-group["lr"])
                state["average"].lerp_(parameter.grad, 0.01)


@case("optimizers.lion.first")
def lion():
    return training(Lion)


@case("optimizers.lion.later")
def lion_later():
    return training(Lion, warm=2)


@case("optimizers.adam_by_hand", expect="either")
def adam_by_hand():
    """Bias corrections are powers of a Python number that counts the steps."""
    weight = torch.randn(4, 2, requires_grad=True)
    moments = torch.zeros(2, 4, 2)
    count = 0

    def step(x):
        nonlocal count
        count += 1
        loss = (x @ weight).square().mean()
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            moments[0].lerp_(gradient, 0.1)
            moments[1].lerp_(gradient.square(), 0.001)
            first, second = moments[0] / (1 - 0.9**count), moments[1] / (1 - 0.999**count)
            weight.sub_(0.01 * first / (second.sqrt() + 1e-8))
        return loss.detach()

    # A count is a number of the program: right if it is followed, refused if it is not.
    return Case(step, rows(20), state=lambda: [weight, moments])


@case("optimizers.rate_from_outside", expect="refused", error="lr|rate|number|differ|argument")
def rate_from_outside():
    """Planted: somebody sets another learning rate before each call."""
    made = {}

    def make(parameters):
        made["optimizer"] = torch.optim.SGD(parameters, lr=0.1)
        return made["optimizer"]

    result = training(make)

    def before(call):
        made["optimizer"].param_groups[0]["lr"] = 0.1 / (1 + call)

    result.before = before
    return result


@case("optimizers.rate_from_outside_late", expect="cannot see")
def rate_from_outside_late():
    made = {}

    def make(parameters):
        made["optimizer"] = torch.optim.SGD(parameters, lr=0.1)
        return made["optimizer"]

    result = training(make)

    def before(call):
        made["optimizer"].param_groups[0]["lr"] = 0.1 if call < 8 else 0.01

    result.before = before
    return result


@case("optimizers.group_added_between", expect="refused")
def group_added_between():
    """Planted: the optimizer updates one more parameter from the second call on."""
    model, late = nn.Linear(4, 2), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) * late).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def before(call):
        if call % 2 == 1:
            optimizer.add_param_group({"params": [late]})
        elif call > 0:
            optimizer.param_groups.pop()

    return Case(step, rows(6), state=lambda: tensors_of(model, late), before=before)
