"""Tensors that leave as bytes or numbers and come back; writes, views and aliases."""

import array
import ctypes
import dataclasses
import io
import pickle

import numpy
import torch
from torch import nn

from registry import Case, case, rows, tensors_of

LEAVES = r"memory|numpy|constant|data_ptr|number|value|item|differ|outside|tolist|other"


@case("memory.numpy_round_trip", expect="refused", error=LEAVES)
def numpy_round_trip():
    """Planted: NumPy computes what no dispatcher sees."""
    return Case(lambda x: torch.from_numpy(numpy.fft.fft(x.numpy()).real.copy()), rows(4))


@case("memory.numpy_round_trip_scale", expect="refused", error=LEAVES)
def numpy_round_trip_scale():
    return Case(lambda x: x / float(numpy.linalg.norm(x.numpy())), rows(4))


@case("memory.numpy_view_back", expect="either")
def numpy_view_back():
    """Nothing is computed outside: the same memory comes back as another tensor."""
    return Case(lambda x: torch.from_numpy(x.numpy()) + 1, rows(4))


@case("memory.numpy_write_argument", expect="refused", error=LEAVES)
def numpy_write_argument():
    """Planted: writes into its argument by NumPy."""

    def step(x):
        x.numpy()[0, :] = 7
        return x * 2

    return Case(step, rows(4))


@case("memory.numpy_write_state", expect="refused", error=LEAVES)
def numpy_write_state():
    """Planted: a running sum that NumPy adds up, in a tensor's memory."""
    total = torch.zeros(4)
    view = total.numpy()

    def step(x):
        numpy.add(view, x.sum(0).numpy(), out=view)
        return total * 1

    return Case(step, rows(20), state=lambda: [total])


@case("memory.numpy_write_before_read", expect="refused", error=LEAVES)
def numpy_write_before_read():
    """Planted: fills a new tensor by NumPy, and computes with it."""

    def step(x):
        table = torch.zeros(4)
        table.numpy()[:] = numpy.sort(x[0].numpy())
        return x + table

    return Case(step, rows(4))


@case("memory.tolist", expect="refused", error=LEAVES)
def tolist():
    return Case(lambda x: torch.tensor(sorted(x[0].tolist())), rows(4))


@case("memory.tolist_only_printed", expect="either")
def tolist_only_printed():
    """Prints numbers and computes nothing from them."""
    # Nobody can tell a number that is printed from one that is used.

    def step(x):
        print(x[0].tolist(), x)
        return x + 1

    return Case(step, rows(4))


@case("memory.item_printed", expect="either")
def item_printed():
    # Nobody can tell a number that is printed from one that is used.
    def step(x):
        loss = x.square().mean()
        print(f"loss {loss.item():.3f}")
        return loss

    return Case(step, rows(4))


@case("memory.item_scale", expect="either")
def item_scale():
    return Case(lambda x: x * x.max().item(), rows(4))


@case("memory.item_result", expect="either")
def item_result():
    """A result that is a Python number."""
    return Case(lambda x: x.sum().item(), rows(4))


@case("memory.item_history", expect="refused", error=LEAVES)
def item_history():
    """Planted: a moving average of losses in Python's numbers scales the result."""
    average = 0.0

    def step(x):
        nonlocal average
        average = 0.9 * average + 0.1 * x.square().mean().item()
        return x / average

    return Case(step, rows(20))


@case("memory.branch_on_item", expect="either")
def branch_on_item():
    return Case(lambda x: x.relu() if x.sum().item() > 0 else -x, rows(8))


@case("memory.branch_on_item_same_side", expect="right")
def branch_on_item_same_side():
    """All inputs take one branch: a guard on the comparison lets them all pass."""
    return Case(lambda x: x.relu() if (x.abs().sum() > 0) else -x, rows(4))


@case("memory.loop_until", expect="either")
def loop_until():
    def step(x):
        while x.norm() > 1:
            x = x / 2
        return x

    return Case(step, [x * (1 + i) for i, x in enumerate(rows(6))])


@case("memory.length_of_nonzero", expect="either")
def length_of_nonzero():
    return Case(lambda x: x[x > 0].sum() / len(torch.nonzero(x)), rows(4))


@case("memory.boolean_mask", expect="either")
def boolean_mask():
    return Case(lambda x: x[x > 0], rows(5))


@case("memory.boolean_mask_write")
def boolean_mask_write():
    def step(x):
        y = x.clone()
        y[y < 0] = 0.5
        return y

    return Case(step, rows(5))


@case("memory.unique", expect="either")
def unique():
    return Case(lambda x: torch.unique((x * 2).round()), rows(5))


@case("memory.data_ptr_write", expect="refused", error=LEAVES)
def data_ptr_write():
    """Planted: C writes into the memory of a tensor."""

    def step(x):
        y = torch.zeros(4, 4)
        source = x.contiguous()
        ctypes.memmove(y.data_ptr(), source.data_ptr(), 64)
        return y * 2

    return Case(step, rows(4))


@case("memory.data_ptr_read", expect="refused", error=LEAVES)
def data_ptr_read():
    """Planted: C reads the first number."""

    def step(x):
        return x * ctypes.c_float.from_address(x.data_ptr()).value

    return Case(step, rows(4))


@case("memory.data_ptr_compared", expect="either")
def data_ptr_compared():
    """Asks where memory is, as tests of aliasing do, and reads none of it."""
    # Nobody can tell an address that is compared from one that is read.

    def step(x):
        y = x.reshape(16)
        return y + 1 if y.data_ptr() == x.data_ptr() else y

    return Case(step, rows(4))


@case("memory.data_ptr_state_write", expect="refused", error=LEAVES)
def data_ptr_state_write():
    """Planted: C counts in a buffer, two calls of which look the same to a graph."""
    count = torch.zeros(4)

    def step(x):
        cell = ctypes.c_float.from_address(count.data_ptr())
        cell.value += 1
        return x + count

    return Case(step, rows(8), state=lambda: [count])


@case("memory.bytes", expect="refused", error=LEAVES)
def through_bytes():
    def step(x):
        return torch.frombuffer(bytearray(x.numpy().tobytes()), dtype=torch.float32) * 2

    return Case(step, rows(4))


@case("memory.memoryview_write", expect="refused", error=LEAVES)
def memoryview_write():
    """Planted: Python's array is the memory of a tensor, and the program writes the array."""
    numbers = array.array("f", [0.0] * 4)
    table = torch.frombuffer(numbers, dtype=torch.float32)

    def step(x):
        numbers[0] += 1.0
        return x + table

    return Case(step, rows(8), state=lambda: [table])


@case("memory.dlpack", expect="either")
def dlpack():
    return Case(lambda x: torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)) + 1, rows(4))


@case("memory.dlpack_numpy_write", expect="refused", error=LEAVES)
def dlpack_numpy_write():
    """Planted: NumPy sorts the memory of a tensor that it got by DLPack."""

    def step(x):
        y = x.clone()
        shared = numpy.from_dlpack(y)
        ctypes.memmove(shared.ctypes.data, numpy.sort(shared).copy().ctypes.data, 64)
        return y + 0

    return Case(step, rows(4))


@case("memory.pickle", expect="refused", error=LEAVES)
def through_pickle():
    return Case(lambda x: pickle.loads(pickle.dumps(x)) + 1, rows(4))


@case("memory.save_and_load", expect="refused", error=LEAVES)
def save_and_load():
    def step(x):
        file = io.BytesIO()
        torch.save(x * 2, file)
        file.seek(0)
        return torch.load(file) - 1

    return Case(step, rows(4))


@case("memory.untyped_storage_write", expect="either")
def untyped_storage_write():
    """Writes a byte by the storage."""

    def step(x):
        y = x.clone()
        y.untyped_storage()[3] = 66
        return y * 2

    return Case(step, rows(4))


@case("memory.argument_in_place")
def argument_in_place():
    def step(x):
        x.mul_(2).add_(1)
        return x.sum()

    return Case(step, rows(5))


@case("memory.argument_view_in_place")
def argument_view_in_place():
    def step(x):
        x[1:3].t()[0].copy_(x[0, :2])
        return x.diagonal()

    return Case(step, rows(5))


@case("memory.argument_is_result", expect="copies")
def argument_is_result():
    """The result is the argument itself: who writes one writes both."""
    return Case(lambda x: x.add_(1), rows(5), after=lambda call, y: y.mul_(3))


@case("memory.argument_untouched_is_result")
def argument_untouched_is_result():
    return Case(lambda x: (x, x.sum()), rows(5), after=lambda call, y: y[0].zero_())


@case("memory.result_is_view_of_argument")
def result_is_view_of_argument():
    return Case(lambda x: x.t()[1:], rows(5), after=lambda call, y: y.fill_(call))


@case("memory.result_is_state", expect="copies")
def result_is_state():
    """The result is the buffer: earlier results change as it does."""
    total = torch.zeros(4, 4)
    return Case(lambda x: total.add_(x), rows(8), state=lambda: [total], keep=True)


@case("memory.result_is_state_and_written", expect="copies")
def result_is_state_and_written():
    total = torch.zeros(4, 4)
    return Case(lambda x: total.add_(x), rows(8), state=lambda: [total],
                after=lambda call, y: y.mul_(0.5))


@case("memory.result_is_parameter", expect="copies")
def result_is_parameter():
    layer = nn.Linear(4, 4)

    def step(x):
        with torch.no_grad():
            layer.weight.add_(x)
        return layer.weight.detach()

    return Case(step, rows(8), state=lambda: [layer.weight], keep=True)


@case("memory.results_alias_each_other")
def results_alias_each_other():
    def step(x):
        y = x * 2
        return y, y[0], y

    return Case(step, rows(5), after=lambda call, y: y[0].add_(call))


@case("memory.results_fresh_each_call")
def results_fresh_each_call():
    """Nobody's result changes by a later call."""
    return Case(lambda x: (x + 1, x.expand(2, 4, 4) * 2), rows(6), keep=True)


@case("memory.two_arguments_one_memory", expect="either")
def two_arguments_one_memory():
    """The second argument is a view of the first one, in every call."""

    def step(x, y):
        x.mul_(2)
        return y + 1

    return Case(step, [(x, x[0]) for x in rows(5)])


@case("memory.two_arguments_alias_later", expect="either")
def two_arguments_alias_later():
    """The arguments share memory from the third call on."""

    def step(x, y):
        x.mul_(2)
        return y + 1

    inputs = [(x, x[0] if i >= 2 else x[0].clone()) for i, x in enumerate(rows(5))]
    return Case(step, inputs)


@case("memory.argument_is_state", expect="either")
def argument_is_state():
    """The caller passes the very buffer that the program writes."""
    total = torch.zeros(4, 4)

    def step(x):
        total.add_(1)
        return x * 2

    inputs = rows(3) + [total, total.t()]
    return Case(step, inputs, state=lambda: [total])


@case("memory.argument_kept", expect="either")
def argument_kept():
    """Holds on to its first argument and writes it in each later call."""
    held = []

    def step(x):
        held.append(x)
        held[0].add_(1)
        return held[0] + x

    return Case(step, rows(6))


@case("memory.strides_of_argument", expect="either")
def strides_of_argument():
    """A transposed argument in the third call."""
    inputs = [x.t() if i == 2 else x for i, x in enumerate(rows(5))]
    return Case(lambda x: x.flatten() if x.is_contiguous() else x.sum(0), inputs)


@case("memory.set_data", expect="either")
def set_data():
    """Gives a parameter other memory."""
    layer = nn.Linear(4, 4)

    def step(x):
        layer.weight.data = layer.weight.data * 0.5
        return layer(x).detach()

    return Case(step, rows(8))


@case("memory.resize_out", expect="either")
def resize_out():
    # The first call finds another size than the others do.
    out = torch.empty(0)
    return Case(lambda x: torch.add(x, 1, out=out).sum(), rows(5), state=lambda: [out])


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    parts: dict


@case("memory.dataclass_result")
def dataclass_result():
    return Case(lambda x: Output(x.sum(), {"rows": x.sum(1), "all": [x, (x * 2,)]}), rows(4))


@case("memory.none_result")
def none_result():
    total = torch.zeros(4, 4)

    def step(x):
        total.add_(x)

    return Case(step, rows(8), state=lambda: [total])


@case("memory.nothing_done")
def nothing_done():
    return Case(lambda x: None, rows(4))


@case("memory.constant_result")
def constant_result():
    return Case(lambda x: torch.ones(3), rows(4), after=lambda call, y: y.add_(1))


@case("memory.parameters_replaced", expect="either")
def parameters_replaced():
    """Another Parameter object before the third call: does the capture read the old one?"""
    layer = nn.Linear(4, 4)

    def before(call):
        if call == 3:
            layer.weight = nn.Parameter(torch.full((4, 4), 0.5))

    return Case(layer, rows(6), before=before)


@case("memory.parameters_replaced_each_call", expect="either")
def parameters_replaced_each_call():
    layer = nn.Linear(4, 4)

    def before(call):
        layer.weight = nn.Parameter(torch.full((4, 4), 0.5 + call))

    return Case(layer, rows(6), before=before, state=lambda: tensors_of(layer))
