"""Programs to capture: operators of torch's database on a few of its samples each.

    cases, refused = cases_of(info, dtype)
    for case in cases:
        case.program(*case.inputs)
"""

import os
import sys
from typing import Callable, NamedTuple

import numpy
import torch
from torch.testing._internal import common_methods_invocations as database
from torch.utils._pytree import tree_flatten, tree_unflatten

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tracer", "opdb"))
from spread import spread  # noqa: E402
from tensors import clone, tensors_in  # noqa: E402

# The seed of LibTorch and of compiled code when nobody gives one.
SEED = 67280421310721
# Elements of a sample's largest tensor; more where an operator has no smaller samples.
LARGEST_TENSOR = 1000
CAPTURED = (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
COMPUTED = (torch.float32, torch.float64)



def _unseeded(operator, *args, **kwargs):
    return operator(*args, **kwargs)


# Around operators that draw the database seeds and restores the generator. Here the operator is the
# program, and whoever runs it calls seed() before; tests/tracer/opdb captures them as they stand.
_seeded, database.wrapper_set_seed = database.wrapper_set_seed, _unseeded


class Case(NamedTuple):
    label: str  # "float32 sample 2: float32[3, 4] dim=1"
    dtype: torch.dtype
    program: Callable  # of `inputs`; gives whatever the operator gives
    inputs: list  # tensors; some require gradients
    processed: Callable  # of what the program gives: what has a derivative


def seed():
    torch.manual_seed(SEED)
    numpy.random.seed(0)


def fresh(case):
    """Inputs that a run may write to."""
    return [clone(tensor).requires_grad_(tensor.requires_grad) for tensor in case.inputs]


def in_float64(case):
    """The same on wider numbers."""
    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    inputs = [
        t.detach().to(wider.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad)
        for t in case.inputs
    ]
    return case._replace(inputs=inputs)


def with_other_numbers(case):
    """The same on real and complex numbers in another order, or smaller; integers may be indices."""
    return case._replace(inputs=[_other_numbers(tensor) for tensor in case.inputs])


def _other_numbers(tensor):
    is_plain = tensor.layout is torch.strided and tensor.numel() > 0
    if not is_plain or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    copy = clone(tensor)
    copy.copy_(tensor.detach().flip(0) if tensor.dim() else tensor.detach() * 0.875)
    return copy


def captured_dtypes(info):
    """Those of CAPTURED that the operator has samples for, or all others where it has none."""
    return [d for d in CAPTURED if d in info.dtypes] or sorted(info.dtypes, key=str)


def computed_dtypes(info):
    found = [dtype for dtype in COMPUTED if dtype in info.dtypes]
    return found or captured_dtypes(info)


def cases_of(info, dtype, with_gradients=False):
    """Up to four, small ones, from the whole range; and why torch itself refuses others of them."""
    seed()
    samples = list(
        info.sample_inputs("cpu", dtype, requires_grad=with_gradients, set_seed=False)
    )
    small = [sample for sample in samples if _largest(sample) <= LARGEST_TENSOR]
    chosen = spread(small) if small else sorted(samples, key=_largest)[:1]
    cases = [_case(info, dtype, number, sample) for number, sample in enumerate(chosen)]
    refusals = [_refusal(case) for case in cases]
    accepted = [case for case, refusal in zip(cases, refusals) if not refusal]
    return accepted, [refusal for refusal in refusals if refusal]


def _case(info, dtype, number, sample):
    values, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    is_tensor = [isinstance(value, torch.Tensor) for value in values]

    def program(*tensors):
        given = iter(tensors)
        filled = [next(given) if t else value for t, value in zip(is_tensor, values)]
        first, args, kwargs = tree_unflatten(filled, spec)
        wrapper = _unseeded if info.gradcheck_wrapper is _seeded else info.gradcheck_wrapper
        return wrapper(info.op, first, *args, **kwargs)

    texts = [_text(value) for value in values]
    return Case(
        f"{_name(dtype)} sample {number}: {', '.join(texts)}",
        dtype,
        program,
        [value for value, t in zip(values, is_tensor) if t],
        sample.output_process_fn_grad,
    )


def _largest(sample):
    values = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return max((t.numel() for t in tensors_in(values)), default=0)


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def _text(value):
    if isinstance(value, torch.Tensor):
        return f"{_name(value.dtype)}{list(value.shape)}"
    return repr(value)[:40]


def _refusal(case):
    """Empty, or what torch says."""
    try:
        seed()
        case.program(*fresh(case))
        return ""
    except Exception as error:
        return f"{case.label}: {first_line(error)}"


def first_line(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
