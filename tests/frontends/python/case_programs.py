"""Programs whose structure depends on values or on sizes, for tests of what families are written as."""

import torch
from torch.nn import functional as F


def positive(*sizes):
    return torch.rand(*sizes, 8) + 0.1


def negative(*sizes):
    return -positive(*sizes)


class TwoWays(torch.nn.Module):
    """A value chooses; one way has a layer of its own, and writes a buffer."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = (torch.nn.Linear(8, n) for n in (8, 8, 3))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        y = self.first(x)
        if (x.sum() > 0).item():
            y = torch.relu(self.second(y))
            self.count += 1
        else:
            y = y * 2
        return self.last(y)


class Windows(torch.nn.Module):
    """Sizes choose twice: what does not divide is padded, what is long has one layer more."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        tokens = x.shape[1]
        if tokens % 4:
            x = F.pad(x, (0, 0, 0, 4 - tokens % 4))
        else:
            self.count += 1
        y = self.first(x).view(x.shape[0], -1, 4, 8).mean(2)
        if tokens > 20:
            y = self.second(y)
        return y[:, :tokens], x * 2


WINDOWS = {"batch": (2, 7), "tokens": (8, 40)}
# On both sides of both questions, none of them at the ends.
WINDOW_SIZES = [(4, 12), (4, 14), (4, 32), (5, 27), (2, 20), (3, 21)]


class Both(torch.nn.Module):
    """A size chooses, and behind it a value."""

    def __init__(self):
        super().__init__()
        self.short, self.long, self.end = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        if x.shape[0] <= 9:
            return self.end(self.short(x))
        y = self.long(x)
        if (x.sum() > 0).item():
            y = torch.tanh(y)
        return self.end(y)


def normalized(x):
    """A number that the program reads, and computes with in Python."""
    largest = x.abs().max().item()
    return x / largest, x * largest, x.sum().reshape(1)


def shifted(x, count):
    """A whole number that the program reads."""
    number = count.item()
    return x + number, x * number


def mixed(rows):
    """Some rows begin with a number above 0, some with one below."""
    x = torch.randn(rows, 5)
    x[:2, 0], x[2:4, 0] = 1, -1
    return x


def chosen_rows(x):
    chosen = x[x[:, 0] > 0]
    return chosen.sum(1), chosen.t() * 2


def places(x):
    found = (x > 0).nonzero()
    return found, found.float().sum(0)


def selected(x):
    large = torch.masked_select(x, x > 0.5)
    return large * 2, large.view(-1, 1).expand(-1, 3), large.sum()


def routed(x):
    """Rows go to one of two experts, and back to their places."""
    to_first = x[:, 0] > 0
    y = torch.zeros_like(x)
    y[to_first] = x[to_first].exp()
    y[~to_first] = x[~to_first] * 3
    return (y,)


def different(x):
    return (torch.unique(x.round()),)


# The lines that read a number which is compared with nothing.
READS = {f"case_programs.py:{normalized.__code__.co_firstlineno + 2}": "any"}
SHIFTS = {f"case_programs.py:{shifted.__code__.co_firstlineno + 2}": "any"}

BOTH_SHOWN = [positive(n) for n in (2, 5, 9, 4, 7, 10, 13, 18)] + [negative(n) for n in (10, 12, 15, 18)]
