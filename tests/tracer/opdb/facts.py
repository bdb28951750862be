"""More calls made from recorded ones: sibling overloads, and the same call on other data.

    derived = Derived(watch)
    derived.undeclared         # undeclared writes of out=, in-place ... overloads no sample called
    derived.shape_dependent    # names of ops whose result sizes changed with their tensors' data
    derived.value_dependent    # names of ops whose numbers, bools ... did
"""

import itertools
from collections import defaultdict

import torch

from opdb_invented import invented_calls
from opdb_isolate import isolated
from opdb_watch import (
    Call,
    Watch,
    bind,
    clone,
    map_tensors,
    parts,
    qualified_name,
    tensors_in,
    unwatched,
)

_TENSORS_PERTURBED = 6
_INVENTED_CALLS = 2
_KERNELS = (
    "CPU",
    "SparseCPU",
    "SparseCsrCPU",
    "QuantizedCPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def every_overload(namespace="aten"):
    """All overloads the dispatcher has under a namespace, sorted by name."""
    prefix = namespace + "::"
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if name.startswith(prefix):
            base, _, overload = name[len(prefix) :].partition(".")
            yield getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")


class Derived:
    def __init__(self, watch):
        self.undeclared, self.shape_dependent, self.value_dependent = set(), set(), set()
        self.ran = {qualified_name(op) for op, calls in watch.calls.items() if calls}
        calls = [call for kept in watch.calls.values() for call in kept]
        for found in isolated(_perturb, calls):
            self._add(found)
        for found in isolated(_run_sibling, list(_siblings(watch.calls))):
            self._add(found)
        unseen = [op for op in every_overload() if qualified_name(op) not in self.ran]
        for found in isolated(_run_invented, [op for op in unseen if _runs_on_tensors(op)]):
            self._add(found)

    def _add(self, found):
        for name, values in (found or {}).items():
            getattr(self, name).update(values)


def _siblings(calls):
    """(recorded call, overload to call likewise): its out=, in-place, functional or copying twins,
    if they were recorded less often than the op itself."""
    families = defaultdict(list)
    for op in every_overload():
        families[_family(op)].append(op)
    for op in [op for op in calls if op.namespace == "aten"]:
        for target in families[_family(op)]:
            if target is not op and len(calls.get(target, ())) < len(calls[op]):
                for call in calls[op]:
                    yield call, target


def _family(op):
    base = op._schema.name.split("::")[1]
    for suffix in ("_functional", "_copy", "_"):
        if not base.endswith("__"):
            base = base.removesuffix(suffix)
    return base


def _run_sibling(item):
    """What an overload did, called with the arguments of another; None if they do not suit it."""
    try:
        sibling = _bound_by_name(*item)
    except Exception:
        return None
    return _run(sibling) if sibling is not None else None


def _runs_on_tensors(op):
    kernels = torch._C._dispatch_has_kernel_for_dispatch_key
    takes_tensors = any("Tensor" in str(a.type) for a in op._schema.arguments)
    return takes_tensors and any(kernels(op.name(), key) for key in _KERNELS)


def _run_invented(op):
    """What the first made-up calls did that the op has not refused."""
    accepted = (found for found in map(_run, invented_calls(op)) if "ran" in found)
    total = defaultdict(set)
    for found in itertools.islice(accepted, _INVENTED_CALLS):
        for name, values in found.items():
            total[name] |= values
    return total
def _run(call):
    """What the call did; it may be one that the op refuses."""
    torch.manual_seed(0)
    watch = Watch()
    try:
        with watch, torch.no_grad():
            call.map(clone).run()
    except Exception:
        return {"undeclared": watch.undeclared}
    return {"undeclared": watch.undeclared, "ran": {qualified_name(call.op)}, **_perturb(call)}


def _bound_by_name(call, target):
    """The arguments of a call as those of `target`, results of the call as its out arguments; None
    if some argument is missing or of another type."""
    types = {a.name: _main_type(a) for a in call.op._schema.arguments}
    values = bind(call.op._schema, call.args, call.kwargs)
    arguments = target._schema.arguments
    if any(types.get(a.name, _main_type(a)) != _main_type(a) for a in arguments):
        return None
    values.update(zip((a.name for a in arguments if a.is_out), _out_values(call, arguments)))
    if any(a.name not in values and not a.has_default_value() for a in arguments):
        return None
    given = {a.name: values.get(a.name, a.default_value) for a in arguments}
    args = [given[a.name] for a in arguments if not a.kwarg_only]
    return Call(target, args, {a.name: given[a.name] for a in arguments if a.kwarg_only})


def _main_type(argument):
    return str(argument.type).removeprefix("Optional[").rstrip("]")


def _out_values(call, arguments):
    """Tensors of the right types for out arguments: those the call returns."""
    outs = [a for a in arguments if a.is_out]
    if not outs:
        return []
    with unwatched():
        results = list(tensors_in(call.map(clone).run()))
    return [results] if "List" in str(outs[0].type) else results


def _perturb(call):
    """Whether the call's result sizes or numbers change when only its tensors' data change."""
    found = {"shape_dependent": set(), "value_dependent": set()}
    base = _describe(call)
    if base is not None and base == _describe(call):
        for other in filter(None, map(_describe, _on_other_data(call))):
            for kind, before, after in zip(found, base, other):
                if before != after:
                    found[kind].add(qualified_name(call.op))
    return found


def _describe(call):
    """(sizes of all result tensors, repr of all other results), or None if the call fails."""
    torch.manual_seed(0)
    try:
        with unwatched():
            result = call.map(clone).run()
            sizes = [tuple(tensor.shape) for tensor in tensors_in(result)]
            return repr(sizes), repr(map_tensors(lambda t: None, [result]))
    except Exception:
        return None


def _on_other_data(call):
    """The call with other data in one tensor or in all, mostly data that are legal indices."""
    count = len(list(tensors_in([call.args, list(call.kwargs.values())])))
    selections = [range(count)] + [[i] for i in range(min(count, _TENSORS_PERTURBED))]
    for change, selection in itertools.product(_CHANGES, selections):
        numbers = itertools.count()
        try:
            with unwatched():
                yield call.map(lambda t: _changed(t, change) if next(numbers) in selection else t)
        except RuntimeError:  # data that cannot be rewritten
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
    torch.ones_like,
    lambda data: data.reshape(-1)[-1],
    lambda data: data.reshape(-1).flip(0).reshape(data.shape),
)
