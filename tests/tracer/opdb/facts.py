"""What one call tells about its op, beyond the schema.

    for fact in facts_about(call): ...

Facts are pairs of a kind and a text:

    called        OP             the op accepted the call
    writes        OP ARGUMENT    it, or an op it called, changed an argument not declared as written
    data_sizes    OP             with other data in the same tensors, results have other sizes
    data_numbers  OP             ... or a result that is no tensor is another one
    host_reads    OP             ... or the kernel of a composite op goes another way, although no
                                 op that it calls gave another answer: it reads data on its own
"""

import functools
import itertools

import torch

from tensors import clone, map_tensors, parts, tensors_in
from watch import Watch, WriteWatch, unwatched

_TENSORS_CHANGED = 4


def seed():
    """Without torch.manual_seed, which takes longer than most calls."""
    torch.default_generator.manual_seed(0)


def facts_about(call):
    watch = WriteWatch()
    accepted = True
    try:
        seed()
        fresh = call.map(clone)
        with watch, torch.no_grad():
            fresh.run()
    except Exception:
        accepted = False
    yield from (("writes", write) for write in watch.undeclared)
    if accepted:
        yield "called", call.op.name()
        yield from ((kind, call.op.name()) for kind in _reactions(call))


def _reactions(call):
    """Kinds of fact, from calls with other data in the same tensors."""
    base = _answer_and_steps(call)
    if base is None:
        return
    others = [_answer_and_steps(other) for other in _on_other_data(call)]
    others = [other for other in others if other not in (None, base)]
    if not others or base != _answer_and_steps(call):
        return
    for other in others:
        yield from (kind for kind in base[0] if other[0][kind] != base[0][kind])
        if is_composite(call.op) and _goes_another_way(base, other):
            yield "host_reads"


@functools.cache
def is_composite(op):
    """Whether its CPU kernel only calls other ops, as far as the dispatcher knows."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(op.name(), "CompositeImplicitAutograd") and not (
        has_kernel(op.name(), "CPU") or has_kernel(op.name(), "AutogradCPU")
    )


def _answer_and_steps(call):
    """None if the call is refused."""
    steps = _Steps()
    try:
        seed()
        fresh = call.map(clone)
        with torch.no_grad(), steps if is_composite(call.op) else unwatched():
            return _answer(fresh.run()), steps.steps
    except Exception:
        return None


def _answer(result):
    """All of a result but the data of its tensors."""
    return {
        "data_sizes": [t.is_nested or tuple(t.shape) for t in tensors_in(result)],
        "data_numbers": repr(map_tensors(lambda tensor: None, [result])),
    }


class _Steps(Watch):
    """The calls that a composite's kernel makes, down to ops that are no composites, and what those
    answer."""

    def __init__(self):
        self.steps = []

    def run(self, call, proceed):
        self.steps.append(("calls", call.text()))
        if is_composite(call.op):
            return proceed()
        with unwatched():
            result = proceed()
        self.steps.append(("answers", _answer(result)))
        return result


def _goes_another_way(base, other):
    """Whether something differs that does not follow from an inner op's answer."""
    for before, after in itertools.zip_longest(base[1], other[1]):
        if before != after:
            return "answers" not in (before or after)
    return base[0] != other[0]


def _on_other_data(call):
    """The call with other data in one tensor or in all, mostly data that are legal indices."""
    count = len(list(tensors_in([call.args, list(call.kwargs.values())])))
    selections = [range(count)] + [[i] for i in range(min(count, _TENSORS_CHANGED)) if count > 1]
    for change, selection in itertools.product(_CHANGES, selections):
        numbers = itertools.count()
        try:
            yield call.map(lambda t: _changed(t, change) if next(numbers) in selection else t)
        except (IndexError, RuntimeError):  # data that cannot be rewritten
            pass


def _changed(tensor, change):
    """A copy with other data; the indices of a sparse tensor are metadata and stay."""
    copy = clone(tensor)
    data = parts(copy)[-1]
    if data.numel():
        data.copy_(change(data.clone()))
    return copy


_CHANGES = (
    torch.zeros_like,
    lambda data: data.reshape(-1)[-1],
    lambda data: data.reshape(-1).flip(0).reshape(data.shape),
)
