"""Custom operators, modes, and work on other threads."""

import concurrent.futures
import threading

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from registry import Case, case, rows


@torch.library.custom_op("sweep::honest", mutates_args=())
def honest(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.detach().numpy() * 2)


@torch.library.custom_op("sweep::fills", mutates_args={"out"})
def fills(x: torch.Tensor, out: torch.Tensor) -> None:
    out.numpy()[:] = x.numpy().sum(0)


@torch.library.custom_op("sweep::liar", mutates_args=())
def liar(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    out.numpy()[:] += 1
    return x + 1


CALLS = {"counted": 0}


@torch.library.custom_op("sweep::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    CALLS["counted"] += 1
    return x * CALLS["counted"]


LIBRARY = torch.library.Library("sweep_plain", "DEF")
LIBRARY.define("doubled(Tensor x) -> Tensor")
LIBRARY.define("silent_write(Tensor x) -> Tensor")
LIBRARY.impl("doubled", lambda x: torch.from_numpy(x.numpy() * 2), "CPU")


def silent_write(x):
    x.numpy()[:] += 1
    return x.clone()


LIBRARY.impl("silent_write", silent_write, "CPU")


@case("operators.custom_op")
def custom_op():
    return Case(lambda x: honest(x.sin()).cos(), rows(5))


@case("operators.custom_op_writes")
def custom_op_writes():
    out = torch.zeros(4)

    def step(x):
        fills(x, out)
        return out * 2

    return Case(step, rows(8), state=lambda: [out])


@case("operators.custom_op_lies", expect="either")
def custom_op_lies():
    """Writes an argument that its schema says it reads."""
    out = torch.zeros(4)

    def step(x):
        y = liar(x, out)
        return y + out

    return Case(step, rows(8), state=lambda: [out])


@case("operators.custom_op_lies_and_is_unused", expect="either")
def custom_op_lies_and_is_unused():
    """Nobody reads its result: only the write counts."""
    out = torch.zeros(4)

    def step(x):
        liar(x, out)
        return x * 2

    return Case(step, rows(8), state=lambda: [out])


@case("operators.custom_op_counts", expect="either")
def custom_op_counts():
    """What happens inside of a custom operator is its own; it runs once in each call."""
    CALLS["counted"] = 0
    return Case(lambda x: counted(x) + 1, rows(8))


@case("operators.library_op")
def library_op():
    return Case(lambda x: torch.ops.sweep_plain.doubled(x) - 1, rows(5))


@case("operators.library_op_lies", expect="either")
def library_op_lies():
    """Writes the argument of the program, and says nothing of it."""
    return Case(lambda x: torch.ops.sweep_plain.silent_write(x) * 2, rows(5))


class CosineForSine(TorchDispatchMode):
    """Replaces each sine by a cosine."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.sin.default:
            function = torch.ops.aten.cos.default
        return function(*args, **(kwargs or {}))


@case("operators.dispatch_mode_inside", expect="either")
def dispatch_mode_inside():
    def step(x):
        with CosineForSine():
            y = x.sin()
        return y + x.sin()

    return Case(step, rows(5))


@case("operators.function_mode_inside", expect="either")
def function_mode_inside():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.sin:
                function = torch.tanh
            return function(*args, **(kwargs or {}))

    def step(x):
        with Mode():
            return torch.sin(x)

    return Case(step, rows(5))


@case("operators.thread", expect="either")
def thread():
    """Computes a part on another thread, and waits for it."""

    def step(x):
        out = []
        worker = threading.Thread(target=lambda: out.append(x.exp()))
        worker.start()
        worker.join()
        return out[0] + 1

    return Case(step, rows(5))


@case("operators.thread_writes_state", expect="either")
def thread_writes_state():
    total = torch.zeros(4, 4)

    def step(x):
        worker = threading.Thread(target=lambda: total.add_(x))
        worker.start()
        worker.join()
        return total * 2

    return Case(step, rows(20), state=lambda: [total])


@case("operators.thread_in_background", expect="either")
def thread_in_background():
    """A worker that lives on: the step gives it a job by an event, and waits for another."""
    total, job, go, done = torch.zeros(4, 4), [], threading.Event(), threading.Event()

    def work():
        while True:
            go.wait()
            go.clear()
            total.add_(job.pop())
            done.set()

    threading.Thread(target=work, daemon=True).start()

    def step(x):
        job.append(x)
        done.clear()
        go.set()
        done.wait()
        return total.sum()

    return Case(step, rows(20), state=lambda: [total])


@case("operators.pool", expect="either")
def pool():
    workers = concurrent.futures.ThreadPoolExecutor(2)
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def step(x):
        return torch.stack(list(workers.map(lambda layer: layer(x), layers))).sum(0)

    return Case(step, rows(5))
