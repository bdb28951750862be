"""What torch.export saves of a model, read as a capture: with its bits, with autograd's gradients, and
compiled by both backends.

    why = wrong_reading(architectures.make("bert"), *inputs)     # empty: all is right
"""

import pathlib
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import flashlight
from agreement import TIMES, exactly, leaves, loss_of, numbers, same_bits, times_further


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
    return _wrong_code(captured, module, arguments, keywords) or _wrong_gradients(
        original, Loss(module), arguments, keywords)


def _wrong_code(captured, module, arguments, keywords):
    with torch.no_grad():
        torchs = numbers(module(*arguments, **keywords))
        exact = numbers(exactly(module, module, arguments, keywords))
        for backend in ("cpp", "mosaic"):
            received = numbers(captured.compile(backend, flags=["-O1"])(*arguments, **keywords))
            times = times_further(received, torchs, exact)
            if times > TIMES:
                return f"{backend}: {times:.1f} times as far from float64 as torch"
    return ""


def _wrong_gradients(original, loss, arguments, keywords):
    """Of the parameters. Tokens that see nothing have others by torch's flash kernel (models.py)."""
    captured = read(exported(loss, *original.inputs(1)))
    _, gradients = captured.grad()(*arguments, **keywords)
    names = [name for name, _ in loss.named_parameters() if name in gradients]

    def autograd(*arguments, **keywords):
        loss.zero_grad()
        with torch.enable_grad():
            loss(*arguments, **keywords).backward()
        found = dict(loss.named_parameters())
        return [torch.zeros_like(p) if p.grad is None else p.grad.clone()  # it plays no part
                for p in map(found.get, names)]

    def times():
        exact = exactly(loss, autograd, arguments, keywords)
        return times_further([gradients[n] for n in names], autograd(*arguments, **keywords), exact)

    if times() <= TIMES:
        return ""
    with sdpa_kernel(SDPBackend.MATH):
        found = times()
    return "" if found <= TIMES else f"gradients: {found:.1f} times as far from float64 as torch's"
