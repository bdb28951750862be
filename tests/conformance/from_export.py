"""What torch.export saves of a model, read as a capture: with its bits, with autograd's gradients, and
compiled by both backends.

    why = wrong_reading(architectures.make("bert"), *inputs)     # empty: all is right
"""

import pathlib
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import flashlight
from agreement import TIMES, exactly, known, leaves, loss_of, numbers, same_bits, times_further


class Results(torch.nn.Module):
    """A model as a module that gives its tensors alone."""

    def __init__(self, original):
        super().__init__()
        self.model = original.model
        self._call = original.call

    def forward(self, *arguments, **keywords):
        return leaves(self._call(*arguments, **keywords))


class Loss(torch.nn.Module):
    """One number of all that a module gives."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *arguments, **keywords):
        return loss_of(self.module)(*arguments, **keywords)


def exported(module, arguments, keywords):
    """A program of torch.export without writes, for other inputs of these sizes."""
    with torch.no_grad():
        program = torch.export.export(module, tuple(arguments), keywords, strict=False)
        return program.run_decompositions({})


def read(program):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "program.pt2"
        torch.export.save(program, file)
        return flashlight.load_pt2(file)


def wrong_reading(original, arguments, keywords):
    """The first thing that is wrong, on these inputs; it was exported with others."""
    module = Results(original).eval()
    try:
        program = exported(module, *original.inputs(1))
    except Exception as error:
        return f"torch.export refuses it: {error}"
    captured = read(program)
    with torch.no_grad():
        expected = program.module()(*arguments, **keywords)
        if not same_bits(captured(*arguments, **keywords), expected):
            return "other bits than torch's"
    return _wrong_code(captured, module, numbers(expected), arguments, keywords) or _wrong_gradients(
        original, Loss(module), arguments, keywords)


def _wrong_code(captured, module, expected, arguments, keywords):
    with torch.no_grad():
        torchs = numbers(module(*arguments, **keywords))
        if not all(torch.allclose(p, q, 1e-3, 1e-3, equal_nan=True) for p, q in zip(torchs, expected)):
            return "torch.export's program is another than the model, which keeps state"
        exact = numbers(exactly(module, module, arguments, keywords))
        for backend in ("cpp", "mosaic"):
            received = numbers(captured.compile(backend, flags=["-O1"])(*arguments, **keywords))
            times = times_further(*known(received, torchs, exact))
            if times > TIMES:
                return f"{backend}: {times:.1f} times as far from float64 as torch"
    return ""


def _wrong_gradients(original, loss, arguments, keywords):
    """Of the parameters. Tokens that see nothing have others by torch's flash kernel (models.py)."""
    captured = read(exported(loss, *original.inputs(1)))
    _, gradients = captured.grad()(*arguments, **keywords)

    def autograd(*arguments, **keywords):
        loss.zero_grad()
        with torch.enable_grad():
            loss(*arguments, **keywords).backward()
        return {name: p.grad.clone() for name, p in loss.named_parameters() if p.grad is not None}

    def times():
        exact, torchs = exactly(loss, autograd, arguments, keywords), autograd(*arguments, **keywords)
        # run_decompositions takes no_grad away: the program may have gradients that the model lacks.
        return times_further(*known(*([of[name] for name in exact]
                                      for of in (gradients, torchs, exact))))  # fmt: skip

    if times() <= TIMES:
        return ""
    with sdpa_kernel(SDPBackend.MATH):
        found = times()
    return "" if found <= TIMES else f"gradients: {found:.1f} times as far from float64 as torch's"
