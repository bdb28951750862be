"""What is asked of a captured operator, a column of the table each.

    result = COLUMNS["replayed"](Subject(info))     # {"samples": 8, "failures": [[label, reason], …]}
"""

import functools
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "frontends/python"))

import _conformance
import flashlight
import torch
from cases import captured_dtypes, cases_of, computed_dtypes, first_line, fresh, in_float64, seed, with_other_numbers
from exceptions import ignores_values
from torch.utils._pytree import tree_flatten

# Compilers spend their time on optimisation, of which the backends have tests of their own.
FLAGS = ["-O1"]


class Subject:
    """An operator of the database; what several columns need of it is made once."""

    def __init__(self, info):
        self.info = info
        self.name = name_of(info)
        self.refused = []  # samples of the database that torch does not run, and why

    @functools.cached_property
    def cases(self):
        """Of all dtypes that are captured."""
        return [case for dtype in captured_dtypes(self.info) for case in self._of(dtype)]

    @functools.cached_property
    def computed(self):
        """Those of dtypes that are computed by our definitions and compiled code."""
        return [case for case in self.cases if case.dtype in computed_dtypes(self.info)]

    @functools.cached_property
    def differentiated(self):
        if not self.info.supports_autograd:
            return []
        dtypes = [d for d in computed_dtypes(self.info) if d.is_floating_point]
        return [case for dtype in dtypes for case in self._of(dtype, True) if _has_derivative(case)]

    def _of(self, dtype, with_gradients=False):
        try:
            cases, refused = cases_of(self.info, dtype, with_gradients)
        except Exception as error:  # of the database: its samples do not suit the dtype
            cases, refused = [], [f"{dtype}: {first_line(error)}"]
        self.refused += refused
        return cases

    @functools.cached_property
    def _captures(self):
        return {}

    def capture(self, case):
        """Raises again what capturing raised before."""
        kept = self._captures
        if case.label not in kept:
            try:
                seed()
                with torch.no_grad():
                    kept[case.label] = flashlight.trace(case.program, *fresh(case))
            except Exception as error:
                kept[case.label] = error
        if isinstance(kept[case.label], Exception):
            raise kept[case.label]
        return kept[case.label]


def name_of(info):
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def _tensors(result):
    return [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]


def _others(result):
    return [leaf for leaf in tree_flatten(result)[0] if not isinstance(leaf, torch.Tensor)]


def _eager(case):
    inputs = fresh(case)
    seed()
    with torch.no_grad():
        result = case.program(*inputs)
    return result, inputs


def _each(cases, check):
    failures = []
    for case in cases:
        try:
            wrong = check(case)
        except Exception as error:
            wrong = first_line(error)
        if wrong:
            failures.append([case.label, wrong])
    return {"samples": len(cases), "failures": failures}


# ---- captured, replayed -------------------------------------------------------------------------


def captured(subject):
    def check(case):
        subject.capture(case)

    return _each(subject.cases, check) | {"refused": subject.refused}


def replayed(subject):
    """To the bit, NaNs and the sign of zeros included; sizes, strides and dtypes as well; what is
    written to arguments, too. On other numbers than the captured ones the same, or an error."""

    def check(case):
        capture = subject.capture(case)
        wrong = _differing_replay(subject, case, capture)
        if wrong:
            return wrong
        try:
            others = with_other_numbers(case)
            _eager(others)
            capture(*fresh(others))
        except Exception:  # a guard, or torch itself
            return ""
        wrong = _differing_replay(subject, others, capture)
        return f"on other numbers: {wrong}" if wrong else ""

    return _each(subject.cases, check)


def _differing_replay(subject, case, program):
    expected, written = _eager(case)
    inputs = fresh(case)
    seed()
    with torch.no_grad():
        result = program(*inputs)
    if _others(expected) != _others(result):
        return f"expected {_others(expected)}, received {_others(result)}"
    ours, torchs = _tensors(result) + inputs, _tensors(expected) + written
    if len(ours) != len(torchs):
        return f"expected {len(torchs)} tensors, received {len(ours)}"
    compare = _differing_types if ignores_values(subject.name) else _differing_bits
    return next(filter(None, map(compare, ours, torchs)), "")


def _differing_types(ours, torchs):
    for what in ("dtype", "shape", "layout"):
        if getattr(ours, what) != getattr(torchs, what):
            return f"expected {what} {getattr(torchs, what)}, received {getattr(ours, what)}"
    if torchs.layout is torch.strided and ours.stride() != torchs.stride():
        return f"expected strides {torchs.stride()}, received {ours.stride()}"
    return ""


def _differing_bits(ours, torchs):
    wrong = _differing_types(ours, torchs)
    if wrong or torchs.layout is not torch.strided:
        return wrong or _differing_parts(ours, torchs)
    if not torch.equal(_bits(ours), _bits(torchs)):
        return f"other bits in {str(torchs.dtype)}{list(torchs.shape)}"
    return ""


def _differing_parts(ours, torchs):
    """Of sparse tensors."""
    if torchs.layout is torch.sparse_coo:
        pairs = [(ours._indices(), torchs._indices()), (ours._values(), torchs._values())]
    else:
        pairs = [(ours.to_dense(), torchs.to_dense())]
    return next(filter(None, (_differing_bits(a, b) for a, b in pairs)), "")


def _bits(tensor):
    plain = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
    return torch.empty(plain.shape, dtype=plain.dtype).copy_(plain).view(torch.uint8)


# ---- exported -----------------------------------------------------------------------------------


def pt2(subject):
    """What torch.export.load gives runs to the bit, as a replay does."""

    def check(case):
        capture = subject.capture(case)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "program.pt2"
            try:
                capture.export(file)
            except flashlight.Error as error:
                return " ".join(str(error).replace(f" {file}:", "").split())[:300]
            module = torch.export.load(file).module()
        return _differing_replay(subject, case, module)

    return _each(subject.cases, check)


def onnx(subject):
    """onnxruntime gives torch's values, by the tolerances of all tests, and each guard holds. Samples
    that it has no kernels for are not asked."""
    return _in_engine(subject, "onnxruntime", "NOT_IMPLEMENTED")


def xla(subject):
    """The same of XLA, which reads StableHLO."""
    return _in_engine(subject, "xla")


def _in_engine(subject, engine, without_kernel=None):
    import engines

    ending = engines.FORMATS[engine]
    refused, kept = {}, []
    with engines.Models() as models:
        for case in subject.computed:
            try:
                models.add(f"case_{len(kept)}", subject.capture(case), fresh(case), {}, ending)
            except Exception as error:
                refused[case.label] = _reason(error, ending)
            kept.append(case)
        models.run([engine])

        def result(number):
            try:
                return models.results(f"case_{number}", engine)
            except RuntimeError as error:
                return error

        given = {case.label: None if case.label in refused else result(number)
                 for number, case in enumerate(kept)}  # fmt: skip
    asked = [case for case in kept if not without_kernel or without_kernel not in str(given[case.label])]

    def check(case):
        received = given[case.label]
        if case.label in refused or isinstance(received, Exception):
            return refused.get(case.label) or str(received)[:300]
        if not all(bool(v) for name, v in received.items() if name.startswith("guard_")):
            return "a guard does not hold"
        expected = _eager(case)[0]
        outputs = [engines.as_tensor(received[f"output_{i}"], tensor.dtype)
                   for i, tensor in enumerate(_tensors(expected))]  # fmt: skip
        return _differing_values(subject, case, outputs, expected)

    return _each(asked, check)


def _reason(error, ending):
    """Without the format and the file, which are others each time."""
    return " ".join(re.sub(rf"\[\w+\] (\S+\.{ending}: )?", "", str(error), count=1).split())[:300]


# ---- computed by our definitions and by compiled code -------------------------------------------


def rows(subject):
    def check(case):
        result = subject.capture(case).evaluate(*fresh(case))
        return _differing_values(subject, case, result, _eager(case)[0])

    return _each(subject.computed, check)


def _ops(graph):
    """Operations of a graph, those inside of composites included."""
    found = []
    for node in graph.nodes:
        if not node.op.startswith("composit::"):
            found.append(node.op)
        if "body" in node.execution:
            found += _ops(node.execution["body"])
    return found


def _differing_values(subject, case, result, expected):
    ours, torchs = _tensors(result), _tensors(expected)
    if len(ours) != len(torchs):
        return f"expected {len(torchs)} tensors, received {len(ours)}"
    if ignores_values(subject.name):
        return ""

    def exact():
        return _tensors(_eager(in_float64(case))[0])

    ops = _ops(subject.capture(case).graph)
    return _judged(case, ops, "value", "result", ours, torchs, exact)


def _judged(case, ops, what, called, ours, torchs, exact):
    """Up to rounding, by the tolerances of all tests. What is right although it differs passes, and
    what is nearer to `exact()`, the same in float64, than torch is."""
    times = 1 if len(ops) <= 1 else 4
    for number, (mine, other) in enumerate(zip(ours, torchs)):
        if other.layout is not torch.strided:
            return "the result is sparse"
        plain = [_as_precise_as_inputs(case, t) for t in (mine, other)]
        wrong = _conformance.difference(ops, what, *plain, times)
        if not wrong:
            continue
        wrong = f"{called} {number}, {wrong}"
        verdict, why = _conformance.verdict(ops, what, wrong)
        if verdict != "right" and not _is_nearer(*plain, number, exact):
            return wrong + (f" ({why})" if why else "")
    return ""


def _as_precise_as_inputs(case, tensor):
    plain = tensor.detach().resolve_conj().resolve_neg()
    narrower = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    is_narrow = any(t.dtype in narrower.values() for t in case.inputs)
    return plain.to(narrower.get(plain.dtype, plain.dtype)) if is_narrow else plain


def _is_nearer(mine, other, number, exact):
    if other.dtype not in (torch.float32, torch.complex64) or mine.shape != other.shape:
        return False
    try:
        true = exact()[number].detach()
    except Exception:  # not every program runs in another dtype
        return False
    if true.shape != mine.shape or true.dtype not in (torch.float64, torch.complex128):
        return False
    if not torch.equal(mine.isfinite(), true.isfinite()):
        return False
    of_mine, of_torch = ((x.to(true.dtype) - true).abs().nan_to_num(0, 0) for x in (mine, other))
    return bool(of_mine.max() <= of_torch.max())


def cpp(subject):
    return _compiled(subject, "cpp")


def mosaic(subject):
    return _compiled(subject, "mosaic")


def _compiled(subject, backend):
    """All graphs by one call of the compiler; equal ones once."""
    numbers, captures, by_graph = {}, [], {}
    for case in subject.computed:
        try:
            capture = subject.capture(case)
        except Exception:  # the column `captured` says why
            continue
        if capture.graph not in by_graph:
            by_graph[capture.graph] = len(captures)
            captures.append(capture._native)
        numbers[case.label] = by_graph[capture.graph]
    batch = _conformance.Batch(captures, backend, FLAGS) if captures else None

    def check(case):
        subject.capture(case)  # raises what it raised
        number = numbers[case.label]
        if batch.refused[number]:
            return first_line(batch.refused[number])
        return _differing_values(subject, case, batch.run(number, fresh(case)), _eager(case)[0])

    return _each(subject.computed, check)


# ---- differentiated -----------------------------------------------------------------------------


def differentiated(subject):
    """The derivative of a sum of all results with random weights, by autograd and by ours."""

    def autograd(case):
        inputs = fresh(case)
        loss = _weighted(case)
        seed()
        value = loss(*inputs)
        wanted = [t for t in inputs if t.requires_grad]
        return torch.autograd.grad(value, wanted, allow_unused=True, materialize_grads=True)

    def check(case):
        inputs = fresh(case)
        loss = _weighted(case)
        expected = autograd(case)
        seed()
        capture = flashlight.trace(loss, *fresh(case))
        names = [n for n, tensor in zip(_argument_names(capture), inputs) if tensor.requires_grad]
        gradient = capture.grad(0, names)
        seed()
        _, found = gradient(*fresh(case))
        ops = _ops(capture.graph)
        ours = [found[name] for name in names]
        return _judged(case, ops, "derivative", "tensor", ours, expected,
                       lambda: autograd(in_float64(case)))  # fmt: skip

    return _each(subject.differentiated, check)


def _argument_names(capture):
    nodes = [node.attributes for node in capture.graph.nodes if node.op == "composit::input"]
    return [entry["name"] for entry in nodes if entry["kind"] == "user_input"]


def _outputs(case, inputs):
    result = _tensors(case.processed(case.program(*inputs)))
    return [t for t in result if t.requires_grad and (t.is_floating_point() or t.is_complex())]


def _weighted(case):
    """A function that gives one real number."""
    generator = torch.Generator().manual_seed(1)
    weights = []

    def weight(number, tensor):
        if number == len(weights):
            weights.append(torch.rand(tensor.shape, generator=generator, dtype=torch.float32))
        return weights[number].to(tensor.dtype)

    def loss(*inputs):
        terms = []
        for tensor in _outputs(case, inputs):
            real = [tensor.real, tensor.imag] if tensor.is_complex() else [tensor]
            for part in real:
                terms.append((part * weight(len(terms), part)).sum())
        return functools.reduce(torch.add, terms)

    seed()
    loss(*fresh(case))  # draws the weights, which are no part of the program
    return loss


def _has_derivative(case):
    seed()
    try:
        inputs = fresh(case)
        value = _weighted(case)(*inputs)
        wanted = [t for t in inputs if t.requires_grad]
        torch.autograd.grad(value, wanted, allow_unused=True)
        return value.dtype.is_floating_point
    except Exception:
        return False


COLUMNS = {
    "captured": captured,
    "replayed": replayed,
    "rows": rows,
    "differentiated": differentiated,
    "cpp": cpp,
    "mosaic": mosaic,
    "pt2": pt2,
    "onnx": onnx,
    "xla": xla,
}
