"""Calls for which composit has rows, seen while a program runs.

    frontier = Frontier(rows)
    with frontier:
        torch.nn.functional.linear(x, weight)
    frontier.calls      # [aten.linear(input=x, weight=weight)], in the schema's order,
                        # tensors cloned before it ran
    frontier.without_row, frontier.random, frontier.to_numbers      # names of the other operators

A composite operator without a row is opened, as in a capture: the calls that it makes count.
"""

import functools

import torch

from facts import is_composite
from tensors import clone, tensors_in
from watch import Call, Watch, unwatched


class Frontier(Watch):
    def __init__(self, rows):
        """`rows`: names of operators with their overloads."""
        self.calls = []
        self.without_row, self.random, self.to_numbers = set(), set(), set()
        self._rows = rows

    def run(self, call, proceed):
        stands_for = self._with_row(call)
        if stands_for is None and is_composite(call.op):
            return proceed()
        if stands_for is not None:
            with unwatched():
                self.calls.append(stands_for.map(clone))
        elif torch.Tag.nondeterministic_seeded in call.op.tags:
            self.random.add(call.op.name())
        elif not any("Tensor" in str(result.type) for result in call.op._schema.returns):
            self.to_numbers.add(call.op.name())
        else:
            self.without_row.add(call.op.name())
        with unwatched():
            return proceed()

    def _with_row(self, call):
        """The call, or that of its functional form, if there is a row."""
        for op in (call.op, _functional_form(call.op)):
            if op is not None and op.name() in self._rows:
                given = call.bound()
                names = [a.name for a in op._schema.arguments if a.name in given]
                return Call(op, [], {name: given[name] for name in names})
        return None


@functools.cache
def _functional_form(op):
    """`add.Tensor` for `add_.Tensor` and `add.out`: the overload of the same arguments but for
    outputs; None where there is none."""
    base = op._schema.name.removeprefix("aten::").removesuffix("_")
    wanted = [(a.name, str(a.type)) for a in op._schema.arguments if not a.is_out]
    packet = getattr(torch.ops.aten, base, None)
    for overload in packet.overloads() if op._schema.is_mutable and packet else ():
        form = getattr(packet, overload)
        if not form._schema.is_mutable and wanted == [
            (a.name, str(a.type)) for a in form._schema.arguments
        ]:
            return form
    return None


def tensors_of(call):
    return tensors_in(list(call.kwargs.values()))


def is_plain(call):
    """Whether all its tensors are arrays in the CPU's memory."""
    return all(
        t.layout is torch.strided and t.device.type == "cpu" and not t.is_quantized
        for t in tensors_of(call)
    )
