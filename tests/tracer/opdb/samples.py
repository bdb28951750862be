"""Samples from torch's own databases of operators, modules and optimizers.

    for sample in database_samples():
        sample()    # forward and, where it can, backward; some refuse their dtype or layout
"""

import functools

import torch
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import (
    _get_optim_inputs_including_global_cliquey_kwargs as optimizer_inputs,
)
from torch.testing._internal.common_optimizers import optim_db

from facts import seed
from spread import spread
from tensors import tensors_in

_DTYPES = (torch.float32, torch.int64, torch.complex64)  # others reach no further op
_LARGEST_SAMPLE = 1 << 16  # elements of one tensor
_SPARSE_LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
_FOREACH_DBS = ("unary", "binary", "pointwise", "reduce", "other")


def database_samples():
    """Everything, in a fixed order."""
    yield from _operator_samples(invocations.op_db)
    for kind in _FOREACH_DBS:
        yield from _operator_samples(getattr(invocations, f"foreach_{kind}_op_db"))
    yield from _sparse_samples(invocations.op_db)
    yield from _module_samples()
    yield from _optimizer_samples()


def _operator_samples(database):
    for info in database:
        for dtype in [d for d in _DTYPES if d in info.dtypes] or sorted(info.dtypes, key=str):
            seed()
            needs_grad = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
            yield from _some(
                info, info.sample_inputs("cpu", dtype, requires_grad=needs_grad, set_seed=False)
            )


def _sparse_samples(database):
    for info in database:
        for layout in _SPARSE_LAYOUTS:
            if not getattr(info, f"supports_sparse{'' if layout == 'coo' else '_' + layout}"):
                continue
            seed()
            try:
                make = getattr(info, f"sample_inputs_sparse_{layout}")
                yield from _some(info, make("cpu", torch.float32))
            except NotImplementedError:  # supported, but the database has no samples
                pass


def _some(info, samples):
    for sample in spread(samples):
        if all(t.numel() <= _LARGEST_SAMPLE for t in tensors_in([sample.input, sample.args])):
            yield functools.partial(_run, info.op, sample)


def _run(op, sample):
    _backward(op(sample.input, *sample.args, **sample.kwargs))


def _backward(result):
    """Differentiates all outputs at once, as far as they can be."""
    outputs = [t for t in tensors_in(result) if t.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])


def _module_samples():
    for info in module_db:
        for training in (True, False):
            seed()
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
            )
            for sample in spread(inputs):
                if sample.forward_input is not None:
                    made = sample.constructor_input
                    module = info.module_cls(*made.args, **made.kwargs).train(training)
                    yield functools.partial(_run_module, module, sample.forward_input)


def _run_module(module, given):
    _backward(module(*given.args, **given.kwargs))


def _optimizer_samples():
    for info in optim_db:
        for config in optimizer_inputs("cpu", torch.float32, info):
            seed()
            parameters = [torch.nn.Parameter(torch.randn(3, 4)) for _ in range(2)]
            yield functools.partial(_run_optimizer, info, parameters, config.kwargs)


def _run_optimizer(info, parameters, kwargs):
    """Two steps: the second reads the state that the first has made."""
    optimizer = info.optim_cls(parameters, **kwargs)

    def closure():
        for parameter in parameters:
            gradient = torch.randn_like(parameter)
            sparse = info.only_supports_sparse_grads
            parameter.grad = gradient.to_sparse() if sparse else gradient
        return torch.zeros(())

    for _ in range(2):
        closure()
        optimizer.step(closure if info.step_requires_closure else None)
