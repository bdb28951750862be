"""What a program takes from outside of its arguments, and no dispatcher sees.

Most of these are planted: no graph can be right for them, so they must be refused. Where the first
two calls are alike and a later one is not, nothing sees it short of running the program each time.
"""

import os
import random
import tempfile
import time
import threading
import uuid

import numpy
import torch
from torch import nn

from registry import Case, case, rows

CHANGES = "number|constant|differ|another|other|changes|outside|not the same"

SCALE = 1.0
MODE = "plain"
LOG = []


@case("outside.global_number", expect="refused", error=CHANGES)
def global_number():
    def before(call):
        global SCALE
        SCALE = 1.0 + call

    return Case(lambda x: x * SCALE, rows(5), before=before)


@case("outside.global_number_late", expect="cannot see")
def global_number_late():
    def before(call):
        global SCALE
        SCALE = 1.0 if call < 3 else 2.0

    return Case(lambda x: x * SCALE, rows(6), before=before)


@case("outside.global_toggle", expect="refused", error=CHANGES)
def global_toggle():
    """Another operator in every other call."""

    def before(call):
        global MODE
        MODE = "negative" if call % 2 else "plain"

    return Case(lambda x: -x if MODE == "negative" else x.relu(), rows(6), before=before)


@case("outside.closure_number", expect="refused", error=CHANGES)
def closure_number():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return Case(step, rows(5))


@case("outside.closure_number_unused")
def closure_number_unused():
    """Counts its calls and computes nothing from that."""
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * 2

    return Case(step, rows(5))


@case("outside.default_argument", expect="refused", error=CHANGES)
def default_argument():
    """A mutable default, the classic trap."""

    def step(x, seen=[]):
        seen.append(1)
        return x + len(seen)

    return Case(step, rows(5))


@case("outside.attribute_counter", expect="refused", error=CHANGES)
def attribute_counter():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x / self.calls

    return Case(Model(), rows(5))


@case("outside.attribute_counter_late", expect="cannot see")
def attribute_counter_late():
    """Warms up: another branch from the fourth call on."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x.tanh() if self.calls > 3 else x

    return Case(Model(), rows(8))


@case("outside.class_attribute", expect="refused", error=CHANGES)
def class_attribute():
    class Settings:
        slope = 0.1

    def before(call):
        Settings.slope = 0.1 * (1 + call)

    return Case(lambda x: nn.functional.leaky_relu(x, Settings.slope), rows(5), before=before)


@case("outside.tensor_grown", expect="refused")
def tensor_grown():
    """A tensor of the outside is replaced by a larger one."""
    held = {"table": torch.ones(4)}

    def before(call):
        held["table"] = torch.ones(2 + call, 4)

    return Case(lambda x: (x.sum(0) * held["table"]).sum(), rows(5), before=before)


@case("outside.tensor_replaced", expect="either")
def tensor_replaced():
    """A tensor of the outside is another object before each call."""
    held = {}

    def before(call):
        held["shift"] = torch.full((4,), float(call))

    return Case(lambda x: x + held["shift"], rows(6), before=before)


@case("outside.tensor_replaced_late", expect="cannot see")
def tensor_replaced_late():
    held = {"shift": torch.zeros(4)}

    def before(call):
        if call == 4:
            held["shift"] = torch.ones(4)

    return Case(lambda x: x + held["shift"], rows(6), before=before)


@case("outside.tensor_written")
def tensor_written():
    """A tensor of the outside keeps its place, and somebody writes into it between the calls."""
    shift = torch.zeros(4)
    return Case(lambda x: x + shift, rows(6), before=lambda call: shift.fill_(call))


@case("outside.numpy_array_written", expect="either")
def numpy_array_written():
    """The program reads an array of NumPy that somebody writes between the calls."""
    array = numpy.zeros(4, numpy.float32)

    def before(call):
        array[:] = call

    return Case(lambda x: x + torch.from_numpy(array), rows(6), before=before)


@case("outside.numpy_array_copied", expect="either")
def numpy_array_copied():
    """The same, copied by the program: right if the copy is a node that reads the array."""
    array = numpy.zeros(4, numpy.float32)

    def before(call):
        array[:] = call

    return Case(lambda x: x + torch.tensor(array), rows(6), before=before)


@case("outside.clock", expect="refused", error=CHANGES)
def clock():
    return Case(lambda x: x * (time.time() % 1.0), rows(5), repeatable=False)


@case("outside.clock_nanoseconds", expect="refused", error=CHANGES)
def clock_nanoseconds():
    return Case(lambda x: x + time.perf_counter_ns() % 100003, rows(5), repeatable=False)


@case("outside.clock_measures_only")
def clock_measures_only():
    """Measures how long a step takes, and computes nothing from it."""
    spent = []

    def step(x):
        start = time.perf_counter()
        y = x @ x
        spent.append(time.perf_counter() - start)
        return y

    return Case(step, rows(5))


@case("outside.environment", expect="refused", error=CHANGES)
def environment():
    def before(call):
        os.environ["SWEEP_SCALE"] = str(1 + call)

    return Case(lambda x: x * float(os.environ["SWEEP_SCALE"]), rows(5), before=before)


@case("outside.environment_late", expect="cannot see")
def environment_late():
    def before(call):
        os.environ["SWEEP_SCALE"] = "1" if call < 4 else "3"

    return Case(lambda x: x * float(os.environ["SWEEP_SCALE"]), rows(6), before=before)


@case("outside.python_random", expect="refused", error=CHANGES)
def python_random():
    return Case(lambda x: x * random.random(), rows(5))


@case("outside.python_random_branch", expect="refused", error=CHANGES)
def python_random_branch():
    """Skips a layer by chance, by Python's generator: stochastic depth."""
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    coins = random.Random(1)  # Falls on one side, then on the other.

    def step(x):
        y = first(x)
        return second(y) if coins.random() < 0.5 else y

    return Case(step, rows(8))


@case("outside.numpy_random", expect="refused", error=CHANGES)
def numpy_random():
    return Case(lambda x: x + float(numpy.random.rand()), rows(5))


@case("outside.numpy_random_tensor", expect="refused", error=CHANGES)
def numpy_random_tensor():
    generator = numpy.random.default_rng(3)
    return Case(lambda x: x + torch.from_numpy(generator.standard_normal((4, 4))), rows(5))


@case("outside.uuid", expect="refused", error=CHANGES)
def unique_number():
    return Case(lambda x: x + uuid.uuid4().int % 1009, rows(5), repeatable=False)


@case("outside.urandom", expect="refused", error=CHANGES)
def urandom():
    def step(x):
        noise = torch.frombuffer(bytearray(os.urandom(16)), dtype=torch.uint8)
        return x.flatten() + noise

    return Case(step, rows(5), repeatable=False)


@case("outside.object_hash", expect="refused", error=CHANGES)
def object_hash():
    """The order of a set of new objects is that of their addresses."""
    held = []

    def step(x):
        held.append([object() for _ in range(50)])
        return x * (id(held[-1][-1]) % 10007)

    return Case(step, rows(5), repeatable=False)


@case("outside.set_order")
def set_order():
    """A set of strings has one order in a process, whatever that is."""
    names = {"alpha", "beta", "gamma", "delta"}
    scales = {name: torch.full((), 1.0 + len(name)) for name in names}

    def step(x):
        for name in names:
            x = (x * scales[name]).sin()
        return x

    return Case(step, rows(5))


@case("outside.file_next_line", expect="refused", error=CHANGES)
def file_next_line():
    file = tempfile.TemporaryFile("w+")
    file.write("\n".join(str(0.5 * i) for i in range(10)))
    file.seek(0)
    return Case(lambda x: x + float(file.readline()), rows(6))


@case("outside.file_of_tensors", expect="refused", error=CHANGES)
def file_of_tensors():
    """Each call reads a tensor from a file that the caller wrote before it."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "batch.pt")

    def before(call):
        torch.save(torch.full((4,), float(call)), path)

    return Case(lambda x: x * torch.load(path), rows(5), before=before)


@case("outside.file_appended")
def file_appended():
    """Writes its number of rows to a log; what it computes is its own."""
    log = tempfile.TemporaryFile("w+")

    def step(x):
        log.write(f"{x.shape[0]}\n")
        return x.softmax(-1)

    return Case(step, rows(5))


@case("outside.list_appended")
def list_appended():
    """Appends its results to a global list."""

    def step(x):
        y = x.exp()
        LOG.append(y)
        return y + 1

    return Case(step, rows(5))


@case("outside.list_length", expect="refused", error=CHANGES)
def list_length():
    log = []

    def step(x):
        log.append(x.mean().detach())
        return x / len(log)

    return Case(step, rows(5))


@case("outside.queue", expect="refused", error=CHANGES)
def queue_of_numbers():
    """Takes a number that the caller put there."""
    numbers = []

    def before(call):
        numbers.append(0.25 * call)

    return Case(lambda x: x - numbers.pop(), rows(5), before=before)


@case("outside.thread_writes_number", expect="refused", error=CHANGES)
def thread_writes_number():
    """A thread of the program counts, one up before each call."""
    box = {"number": 0}

    def count():
        box["number"] += 1

    def before(call):
        thread = threading.Thread(target=count)
        thread.start()
        thread.join()

    return Case(lambda x: x * box["number"], rows(5), before=before)


@case("outside.number_argument", expect="either")
def number_argument():
    """A Python number among the arguments: part of the capture's type."""
    return Case(lambda x, k: x * k, [(x, 1 + i) for i, x in enumerate(rows(4))])


@case("outside.number_argument_same")
def number_argument_same():
    return Case(lambda x, k: x.topk(k).values, [(x, 2) for x in rows(4)])


@case("outside.string_argument", expect="either")
def string_argument():
    def step(x, how):
        return x.relu() if how == "relu" else x.tanh()

    return Case(step, [(x, "tanh" if i % 2 else "relu") for i, x in enumerate(rows(4))])


@case("outside.shape_of_argument", expect="either")
def shape_of_argument():
    """Another number of rows in each call."""
    return Case(lambda x: x / x.shape[0], [torch.ones(3 + i, 2) for i in range(4)])


@case("outside.requires_grad_argument", expect="cannot see")
def requires_grad_argument():
    """Looks at a flag of its argument, which the third call has otherwise."""
    inputs = [x.requires_grad_(i >= 2) for i, x in enumerate(rows(5))]
    return Case(lambda x: (x * 2 if x.requires_grad else x).detach(), inputs)


@case("outside.grad_mode", expect="cannot see")
def grad_mode():
    """Looks at the mode of its caller."""

    def before(call):
        torch.set_grad_enabled(call < 2)

    return Case(lambda x: x * 3 if torch.is_grad_enabled() else x, rows(5), before=before)


@case("outside.default_dtype", expect="either")
def default_dtype():
    """Makes a tensor of the default type, which changes between the calls."""

    def before(call):
        torch.set_default_dtype(torch.float64 if call >= 2 else torch.float32)

    return Case(lambda x: x + torch.ones(4), rows(5), before=before)


@case("outside.layer_list_extended", expect="refused")
def layer_list_extended():
    """A layer is appended before each call."""
    layers = nn.ModuleList([nn.Linear(4, 4)])

    def step(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    def before(call):
        if call > 0:
            layers.append(nn.Linear(4, 4))

    return Case(step, rows(5), before=before)


@case("outside.layer_order", expect="refused")
def layer_order():
    """The layers of a list swap their places before each call."""
    layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def step(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    return Case(step, rows(5), before=lambda call: layers.reverse())


@case("outside.function_replaced", expect="refused", error=CHANGES)
def function_replaced():
    """A function of a table is replaced between the calls; the operators are of one kind."""
    table = {"f": None}

    def before(call):
        table["f"] = lambda x: x.clamp(max=0.1 * call)

    return Case(lambda x: table["f"](x), rows(5), before=before)
