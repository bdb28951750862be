"""Modules with buffers, modes, parametrizations and random draws."""

import copy
import random

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from registry import Case, case, rows, tensors_of


def stateful(model, calls=20, *shape):
    return Case(model, rows(calls, *shape), state=lambda: tensors_of(*model.buffers()))


def trained(model, calls=20, extra=()):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def state():
        return tensors_of(*model.parameters(), *model.buffers(), *extra)

    return Case(step, rows(calls), state=state)


@case("modules.batch_norm")
def batch_norm():
    return stateful(nn.BatchNorm1d(4))


@case("modules.batch_norm_training")
def batch_norm_training():
    return trained(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)))


@case("modules.batch_norm_cumulative", expect="either")
def batch_norm_cumulative():
    """Without a momentum, the factor is one over a count: a number that the program asks for."""
    return stateful(nn.BatchNorm1d(4, momentum=None))


@case("modules.batch_norm_factor_by_hand", expect="either")
def batch_norm_factor_by_hand():
    """The count is a buffer; what is computed from it is a number of Python's."""

    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, x):
            self.count.add_(1)
            self.mean.lerp_(x.mean(0), 1.0 / self.count.item())
            return x - self.mean

    return stateful(Mean())


@case("modules.running_mean_by_tensor")
def running_mean_by_tensor():
    """The same with a factor that stays a tensor."""

    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("count", torch.tensor(0.0))

        def forward(self, x):
            self.count += 1
            self.mean.lerp_(x.mean(0), 1.0 / self.count)
            return x - self.mean

    return stateful(Mean())


@case("modules.instance_norm_tracked")
def instance_norm_tracked():
    return stateful(nn.InstanceNorm1d(3, track_running_stats=True), 20, 2, 3, 5)


@case("modules.weight_norm")
def weight_norm():
    return trained(parametrizations.weight_norm(nn.Linear(4, 4)))


@case("modules.spectral_norm")
def spectral_norm():
    """Iterates on two buffers in each call of training."""
    return trained(parametrizations.spectral_norm(nn.Linear(4, 4)))


@case("modules.spectral_norm_inference")
def spectral_norm_inference():
    return stateful(parametrizations.spectral_norm(nn.Linear(4, 4)).eval(), 6)


@case("modules.spectral_norm_hook")
def spectral_norm_hook():
    """The older one, a forward hook that rebinds the weight."""
    return trained(nn.utils.spectral_norm(nn.Linear(4, 4)))


@case("modules.orthogonal", expect="either")
def orthogonal():
    return trained(parametrizations.orthogonal(nn.Linear(4, 4), use_trivialization=False), 8)


@case("modules.parametrization_cached", expect="either")
def parametrization_cached():
    """A parametrized weight is computed once while it is cached around the calls."""
    model = parametrizations.weight_norm(nn.Linear(4, 4))
    parametrize._cache_enabled += 1
    return Case(model, rows(5))


@case("modules.pruned")
def pruned():
    model = nn.Linear(4, 4)
    prune.l1_unstructured(model, "weight", amount=0.5)
    return trained(model)


@case("modules.pruned_between", expect="either")
def pruned_between():
    """The mask changes in place before the fifth call."""
    model = nn.Linear(4, 4)
    prune.random_unstructured(model, "weight", amount=0.25)
    result = trained(model)

    def before(call):
        if call == 5:
            model.weight_mask[0] = 0

    result.before = before
    return result


@case("modules.lazy_linear", expect="either")
def lazy_linear():
    """Its parameters have no shape before the first call, which is the trace."""
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    return Case(model, rows(5))


@case("modules.lazy_by_hand", expect="either")
def lazy_by_hand():
    """Registers a parameter in its first call."""

    class Lazy(nn.Module):
        def forward(self, x):
            if not hasattr(self, "weight"):
                self.weight = nn.Parameter(torch.randn(x.shape[1], 2))
            return x @ self.weight

    return Case(Lazy(), rows(5))


@case("modules.embedding_max_norm")
def embedding_max_norm():
    """Writes its weight in the forward pass."""
    model = nn.Embedding(8, 3, max_norm=0.7)
    inputs = [torch.tensor([i % 8, (3 * i) % 8]) for i in range(20)]
    return Case(model, inputs, state=lambda: [model.weight])


@case("modules.dropout")
def dropout():
    return Case(nn.Dropout(0.5), rows(20))


@case("modules.dropout_training")
def dropout_training():
    return trained(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1)))


@case("modules.dropout_inference")
def dropout_inference():
    return Case(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval(), rows(4))


@case("modules.random_kinds")
def random_kinds():
    def step(x):
        noise = torch.randn_like(x) + torch.rand(4) + torch.randint(0, 9, (4,))
        return x + noise, torch.bernoulli(x.sigmoid()), torch.randperm(5)

    return Case(step, rows(6))


@case("modules.multinomial")
def multinomial():
    return Case(lambda x: torch.multinomial(x.softmax(-1), 2), rows(6))


@case("modules.seed_inside", expect="either")
def seed_inside():
    def step(x):
        torch.manual_seed(11)
        return x + torch.randn(4)

    return Case(step, rows(5))


@case("modules.seed_inside_counts", expect="refused")
def seed_inside_counts():
    """Planted: seeds with the number of the call."""
    calls = [0]

    def step(x):
        calls[0] += 1
        torch.manual_seed(calls[0])
        return x + torch.randn(4)

    return Case(step, rows(5))


@case("modules.fork_rng", expect="either")
def fork_rng():
    """Draws, and leaves the generator as it was."""

    def step(x):
        with torch.random.fork_rng(devices=[]):
            noise = torch.randn(4)
        return x + noise + torch.rand(4)

    return Case(step, rows(6))


@case("modules.own_generator", expect="either")
def own_generator():
    generator = torch.Generator().manual_seed(5)
    return Case(lambda x: x + torch.randn(4, generator=generator), rows(6))


@case("modules.own_generator_seeded", expect="either")
def own_generator_seeded():
    """A new generator with the same seed in each call."""

    def step(x):
        return x + torch.randn(4, generator=torch.Generator().manual_seed(5))

    return Case(step, rows(6))


@case("modules.generator_state_restored", expect="either")
def generator_state_restored():
    """Two equal draws in one call."""

    def step(x):
        state = torch.get_rng_state()
        first = torch.randn(4)
        torch.set_rng_state(state)
        return x + first - torch.randn(4)

    return Case(step, rows(6))


@case("modules.seeded_between_calls")
def seeded_between_calls():
    return Case(nn.Dropout(0.5), rows(6), before=lambda call: torch.manual_seed(100 - call))


@case("modules.layer_drop", expect="refused")
def layer_drop():
    """Planted: a layer is skipped by chance, decided in Python."""
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
    coins = random.Random(4)

    def step(x):
        for layer in layers:
            if coins.random() < 0.5:
                x = x + layer(x)
        return x

    return Case(step, rows(12))


@case("modules.layer_drop_by_tensor", expect="either")
def layer_drop_by_tensor():
    """The same, decided by a number that torch drew: a guard."""
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def step(x):
        for layer in layers:
            if torch.rand(()) < 0.5:
                x = x + layer(x)
        return x

    return Case(step, rows(12))


@case("modules.layer_drop_by_mask")
def layer_drop_by_mask():
    """The same without a branch."""
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def step(x):
        for layer in layers:
            x = x + layer(x) * (torch.rand(()) < 0.5)
        return x

    return Case(step, rows(12))


@case("modules.eval_between", expect="either")
def eval_between():
    """The mode changes before the second call, back before the third, and so on."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    return Case(model, rows(8), state=lambda: tensors_of(model),
                before=lambda call: model.train(call % 2 == 0))


@case("modules.eval_between_late", expect="cannot see")
def eval_between_late():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    return Case(model, rows(8), before=lambda call: model.train(call < 4))


@case("modules.eval_inside")
def eval_inside():
    """Trains, then evaluates, in one call."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))

    def step(x):
        model.train()
        y = model(x)
        model.eval()
        return y, model(x)

    return Case(step, rows(8), state=lambda: tensors_of(model))


@case("modules.toggles_itself", expect="refused")
def toggles_itself():
    """Planted: each call leaves the other mode to the next one."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def step(x):
        y = model(x)
        model.train(not model.training)
        return y

    return Case(step, rows(8), state=lambda: tensors_of(model))


@case("modules.frozen_between", expect="either")
def frozen_between():
    """A layer stops to learn before the third call."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    result = trained(model, 6)

    def before(call):
        if call == 2:
            model[0].requires_grad_(False)

    result.before = before
    return result


@case("modules.state_dict_inside", expect="either")
def state_dict_inside():
    """Takes the weights, spoils them, and puts them back."""
    # A copy of a state_dict copies storages, which no operator does.
    model = nn.Linear(4, 4)

    def step(x):
        kept = copy.deepcopy(model.state_dict())
        with torch.no_grad():
            model.weight.mul_(x.mean())
            y = model(x)
        model.load_state_dict(kept)
        return y + model(x).detach()

    return Case(step, rows(6), state=lambda: tensors_of(model))


@case("modules.load_state_dict_between")
def load_state_dict_between():
    """Other weights before each call, in place."""
    model = nn.Linear(4, 4)

    def before(call):
        model.load_state_dict({"weight": torch.full((4, 4), 0.1 * call), "bias": torch.ones(4)})

    return Case(model, rows(6), before=before)


@case("modules.load_state_dict_assigned", expect="either")
def load_state_dict_assigned():
    """The same, but the parameters become other objects."""
    model = nn.Linear(4, 4)

    def before(call):
        values = {"weight": torch.full((4, 4), 0.1 * call), "bias": torch.ones(4)}
        model.load_state_dict(values, assign=True)

    return Case(model, rows(6), before=before)


@case("modules.submodule_replaced", expect="either")
def submodule_replaced():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def before(call):
        model[0] = nn.Linear(4, 4)

    return Case(model, rows(6), before=before)


@case("modules.shared")
def shared():
    """One module at two places, trained."""
    layer = nn.Linear(4, 4)
    return trained(nn.Sequential(layer, nn.Tanh(), layer))


@case("modules.tied_weights")
def tied_weights():
    table, head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
    head.weight = table.weight
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

    def step(tokens):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(table(tokens)), tokens)
        loss.backward()
        optimizer.step()
        return loss.detach()

    inputs = [torch.arange(4) * (i + 1) % 6 for i in range(20)]
    return Case(step, inputs, state=lambda: [table.weight])


@case("modules.mask_by_shape_attribute")
def mask_by_shape_attribute():
    """A causal mask that the module makes once for a size."""

    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.masks = {}

        def forward(self, x):
            size = x.shape[0]
            if size not in self.masks:
                self.masks[size] = torch.ones(size, size).tril()
            return (x @ x.t()).masked_fill(self.masks[size] == 0, float("-inf")).softmax(-1) @ x

    return Case(Causal(), rows(5))


@case("modules.attention_dropout")
def attention_dropout():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)
    return Case(layer, rows(6, 2, 3, 4))


@case("modules.attention_inference")
def attention_inference():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True).eval()
    return Case(layer, rows(6, 2, 3, 4))


@case("modules.fake_quantize", expect="either")
def fake_quantize():
    """Observes its range, and quantizes by it."""
    from torch.ao.quantization import FakeQuantize

    model = FakeQuantize()
    return stateful(model, 12)
