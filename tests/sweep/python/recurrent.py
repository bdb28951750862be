"""Programs that remember: hidden state, caches, memos, iterators."""

import collections
import functools
import itertools

import torch
from torch import nn

from registry import Case, case, rows, tensors_of


class Recurrent(nn.Module):
    """h = tanh(a(x) + h): the next call starts where this one ended."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.h = torch.zeros(4, 4)

    def forward(self, x):
        self.h = torch.tanh(self.a(x) + self.h).detach()
        return self.h * 2


@case("recurrent.attribute", expect="either")
def attribute():
    # A replay cannot rebind a Python attribute, so results alone are compared.
    return Case(Recurrent(), rows(20))


@case("recurrent.attribute_from_none", expect="either")
def attribute_from_none():
    """The first call makes the state, the others use it."""

    class Model(Recurrent):
        def __init__(self):
            super().__init__()
            self.h = None

        def forward(self, x):
            a = self.a(x)
            self.h = (a if self.h is None else torch.tanh(a + self.h)).detach()
            return self.h

    return Case(Model(), rows(20))


@case("recurrent.buffer_rebound", expect="either")
def buffer_rebound():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.register_buffer("h", torch.zeros(4, 4))

        def forward(self, x):
            self.h = torch.tanh(self.a(x) + self.h).detach()
            return self.h.sum()

    return Case(Model(), rows(20))


@case("recurrent.buffer_in_place")
def buffer_in_place():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.register_buffer("h", torch.zeros(4, 4))

        def forward(self, x):
            with torch.no_grad():
                self.h.copy_(torch.tanh(self.a(x) + self.h))
            return self.h.sum()

    model = Model()
    return Case(model, rows(20), state=lambda: [model.h])


@case("recurrent.buffer_data")
def buffer_data():
    """Writes through `.data`, which versions do not count."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("h", torch.ones(4, 4))

        def forward(self, x):
            self.h.data = self.h * 0.9 + x
            return self.h.sum()

    model = Model()
    return Case(model, rows(20))


def cell_step(cell, states):
    """Keeps the hidden state of a cell in a list around it."""
    holder = [torch.zeros(4, 4) for _ in range(states)]

    def step(x):
        out = cell(x, holder[0] if states == 1 else tuple(holder))
        holder[:] = [t.detach() for t in ((out,) if states == 1 else out)]
        return holder[0].sum()

    return Case(step, rows(20))


@case("recurrent.gru_cell", expect="either")
def gru_cell():
    return cell_step(nn.GRUCell(4, 4), 1)


@case("recurrent.lstm_cell", expect="either")
def lstm_cell():
    return cell_step(nn.LSTMCell(4, 4), 2)


@case("recurrent.lstm_passed_on")
def lstm_passed_on():
    """The state goes in and out: nothing is remembered."""
    lstm = nn.LSTM(4, 3, num_layers=2)
    h, c = torch.zeros(2, 1, 3), torch.zeros(2, 1, 3)
    inputs = [(x.unsqueeze(1), h + i, c - i) for i, x in enumerate(rows(6))]
    return Case(lambda x, h, c: lstm(x, (h, c)), inputs)


@case("recurrent.gru_training_detached", expect="either")
def gru_training_detached():
    """Truncated backpropagation through time: the hidden state goes on, detached."""
    gru, head = nn.GRU(4, 3, batch_first=True), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*gru.parameters(), *head.parameters()], lr=0.1)
    hidden = torch.zeros(1, 1, 3)

    def step(x):
        nonlocal hidden
        optimizer.zero_grad()
        out, hidden = gru(x.unsqueeze(0), hidden.detach())
        loss = head(out).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, rows(20), state=lambda: tensors_of(*gru.parameters(), *head.parameters()))


@case("recurrent.cache_by_cat", expect="refused", error="size|shape|expected|cat|state|rebound")
def cache_by_cat():
    """Planted: keys and values of attention grow in each call, so no two graphs have one type."""
    query, key = nn.Linear(4, 4), nn.Linear(4, 4)
    cache = torch.zeros(0, 4)

    def step(x):
        nonlocal cache
        cache = torch.cat([cache, key(x).detach()])
        return torch.softmax(query(x) @ cache.t(), -1) @ cache

    return Case(step, rows(8, 1, 4))


@case("recurrent.cache_by_list", expect="refused")
def cache_by_list():
    """Planted: a list that grows by a tensor in each call."""
    seen = []

    def step(x):
        seen.append(x.mean(0))
        return torch.stack(seen).sum(0)

    return Case(step, rows(8))


@case("recurrent.cache_window", expect="either")
def cache_window():
    """The last three inputs, of a size that stays."""
    window = collections.deque([torch.zeros(4, 4)] * 3, maxlen=3)

    def step(x):
        window.append(x.clone())
        return torch.stack(list(window)).mean(0)

    return Case(step, rows(12))


@case("recurrent.cache_by_number", expect="refused")
def cache_by_number():
    """Planted: writes in place where a Python number says."""
    cache, position = torch.zeros(32, 4), 0

    def step(x):
        nonlocal position
        cache[position] = x[0]
        position += 1
        return cache.sum(0)

    return Case(step, rows(20), state=lambda: [cache])


@case("recurrent.cache_by_number_and_slice", expect="refused")
def cache_by_number_and_slice():
    """Planted: attends to the part that is filled, which has another size in each call."""
    cache, position = torch.zeros(32, 4), 0

    def step(x):
        nonlocal position
        cache[position].copy_(x[0])
        position += 1
        return torch.softmax(x @ cache[:position].t(), -1).sum(1)

    return Case(step, rows(20), state=lambda: [cache])


@case("recurrent.cache_by_position_tensor")
def cache_by_position_tensor():
    """As static caches do it: the position is a tensor that the step counts in place."""
    cache, position = torch.zeros(32, 4), torch.zeros(1, dtype=torch.long)

    def step(x):
        cache.index_copy_(0, position, x[:1])
        position.add_(1)
        return cache.sum(0)

    return Case(step, rows(20), state=lambda: [cache, position])


@case("recurrent.cache_by_position_argument")
def cache_by_position_argument():
    cache = torch.zeros(32, 4)

    def step(x, position):
        cache.index_copy_(0, position, x[:1])
        mask = torch.arange(32) <= position
        return (torch.softmax((x @ cache.t()).masked_fill(~mask, -1e9), -1) @ cache).sum()

    inputs = [(x, torch.tensor([i])) for i, x in enumerate(rows(20))]
    return Case(step, inputs, state=lambda: [cache])


@case("recurrent.position_embedding_by_number", expect="refused")
def position_embedding_by_number():
    """Planted: which row of the table is read is a number that the module counts."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.position = nn.Embedding(32, 4), 0

        def forward(self, x):
            out = x + self.table(torch.tensor(self.position))
            self.position += 1
            return out

    return Case(Model(), rows(8))


@case("recurrent.memo_of_first", expect="either")
def memo_of_first():
    """Computes from its first input, and remembers: a constant from the second call on."""
    memo = {}

    def step(x):
        if "scale" not in memo:
            memo["scale"] = x.abs().max()
        return x / memo["scale"]

    return Case(step, rows(6))


@case("recurrent.memo_by_shape")
def memo_by_shape():
    """A table that depends on sizes alone, made in the first call."""
    memo = {}

    def step(x):
        key = tuple(x.shape)
        if key not in memo:
            memo[key] = torch.arange(key[1]).float().cos()
        return x * memo[key]

    return Case(step, rows(6))


@case("recurrent.memo_of_parameter", expect="cannot see")
def memo_of_parameter():
    """Remembers a normalized weight, and forgets it when the weight was trained."""
    weight = torch.randn(4, 4)
    memo = {}

    def step(x):
        if memo.get("version") != weight._version:
            memo.update(version=weight._version, normal=weight / weight.norm())
        return x @ memo["normal"]

    def train(call):
        if call in (3, 5):
            weight.mul_(1 + call)

    return Case(step, rows(8), before=train)


@case("recurrent.lru_cache", expect="either")
def lru_cache():
    """functools remembers a tensor that was computed from another one."""
    table = torch.randn(4)

    @functools.lru_cache
    def rotation(size):
        return torch.outer(table, torch.arange(size).float()).sin()

    return Case(lambda x: x @ rotation(x.shape[1]), rows(6))


@case("recurrent.previous_input", expect="either")
def previous_input():
    """The difference to the last input, held by reference and not copied."""
    last = [torch.zeros(4, 4)]

    def step(x):
        difference = x - last[0]
        last[0] = x
        return difference

    return Case(step, rows(8))


@case("recurrent.generator_of_tensors", expect="refused")
def generator_of_tensors():
    """Planted: each call takes the next of a generator that makes tensors from a number."""

    def noises():
        for number in itertools.count():
            yield torch.full((4,), float(number))

    source = noises()
    return Case(lambda x: x + next(source), rows(6))


@case("recurrent.coroutine_mean", expect="either")
def coroutine_mean():
    """A running mean that a generator keeps in its frame."""

    def running():
        total, count = torch.zeros(4, 4), torch.zeros(())
        mean = None
        while True:
            x = yield mean
            total, count = total + x, count + 1
            mean = total / count

    means = running()
    next(means)
    return Case(lambda x: means.send(x), rows(8))


@case("recurrent.data_loader", expect="refused")
def data_loader():
    """Planted: the batch is not an argument, but the next of a loader."""
    data = torch.utils.data.TensorDataset(torch.randn(64, 4))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=4, num_workers=0))
    model = nn.Linear(4, 2)

    def step(x):
        (batch,) = next(batches)
        return model(batch + x).sum()

    return Case(step, rows(8))


@case("recurrent.data_loader_training", expect="refused")
def data_loader_training():
    """Planted: the same with a step of an optimizer, shuffled."""
    data = torch.utils.data.TensorDataset(torch.randn(96, 4), torch.randn(96, 1))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=4, shuffle=True))
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(scale):
        x, y = next(batches)
        optimizer.zero_grad()
        loss = (scale * (model(x) - y)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, [torch.tensor(1.0 + i) for i in range(20)],
                state=lambda: tensors_of(*model.parameters()))


@case("recurrent.iterator_ends", expect="refused")
def iterator_ends():
    """Planted: the fourth call raises StopIteration, and each of the others reads a number."""
    numbers = iter([1.0, 2.0, 3.0])
    return Case(lambda x: x * next(numbers), rows(5))


@case("recurrent.replay_buffer", expect="refused")
def replay_buffer():
    """Planted: a ring that a Python number walks around; another row is read than written."""
    ring, count = torch.zeros(5, 4), itertools.count()

    def step(x):
        number = next(count)
        ring[number % 5] = x[0]
        return ring[(number + 1) % 5] + ring.mean()

    return Case(step, rows(20), state=lambda: [ring])


@case("recurrent.token_loop", expect="either")
def token_loop():
    """Decodes greedily inside of one call, until a token that depends on the values."""
    table, head = nn.Embedding(8, 4), nn.Linear(4, 8)

    def step(start):
        token, tokens = start, []
        for _ in range(6):
            token = head(table(token).cumsum(0)).argmax(-1)
            tokens.append(token)
            if token.item() == 0:
                break
        return torch.stack(tokens)

    return Case(step, [torch.tensor(i % 8) for i in range(8)])
