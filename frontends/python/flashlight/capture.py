"""Captured programs: called, checked, differentiated, compiled, saved."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from composit import Error, Graph

from flashlight import _flashlight
from flashlight.host_memory import refuse_large_reads
from flashlight.program import Program, modules_of
from flashlight.structure import Structure, flatten, parse

# Files that are never the user's line.
HIDDEN_FOLDERS = [str(pathlib.Path(torch.__file__).parent) + "/",
                  str(pathlib.Path(__file__).parent) + "/"]


def trace(program: Callable, /, *inputs: Any, **kwargs: Any) -> "Capture":
    """Runs `program(*inputs, **kwargs)` once, for real, and returns what ran as a Capture.

    The next calls of the capture run the program again, until one has confirmed it: see
    `Capture.__call__`. `confirm(…)` as the last of `inputs` does that at once on further inputs;
    `seen_once` there switches it off.

    `program` is a module or any callable. Inputs and results may be nested (structure.py).
    Parameters and buffers of the module, or of modules the function finds around it, are inputs
    of the graph under their names. Error, with the line of the program, for what cannot be
    captured; what the program throws passes through."""
    *inputs, request = inputs if inputs and isinstance(inputs[-1], (confirm, _SeenOnce)) else (
        *inputs, None)
    captured = Capture._of_program(program, inputs, kwargs, isinstance(request, _SeenOnce))
    if isinstance(request, confirm):
        request.look_at(captured)
    return captured


class confirm:
    """Further inputs, on which the program is run at once to confirm its capture; the last input of
    `trace`. Error where that finds a difference."""

    def __init__(self, *inputs: Any, **kwargs: Any):
        self.inputs = inputs
        self.kwargs = kwargs

    def look_at(self, captured: "Capture") -> None:
        captured(*self.inputs, **self.kwargs)
        if captured.refusal:
            raise Error(captured.refusal)


class _SeenOnce:
    def __repr__(self) -> str:
        return "flashlight.seen_once"


seen_once = _SeenOnce()


def export(native: Any, file: str | pathlib.Path, options: dict[str, Any]) -> None:
    """Writes a capture, a family or a derivative as the file of other tools that its ending says."""
    path = pathlib.Path(file)
    formats = {name: known for name, known in _FORMATS.items() if hasattr(native, f"save_{name}")}
    chosen = formats.get(path.suffix[1:])
    if chosen is None:
        raise Error(f"[export] expected a file that ends in .{' or .'.join(formats)}, received "
                    f"'{path.name}'")
    if unknown := options.keys() - chosen.keys():
        raise Error(f"[export] {path.suffix} has the options {', '.join(chosen)}, received "
                    f"'{unknown.pop()}'")
    getattr(native, f"save_{path.suffix[1:]}")(path, *(chosen | options).values())


# The options of each format, and what they are otherwise.
_FORMATS = {"pt2": {"parameters_as_buffers": False},
            "onnx": {"opset": 20, "drop_guards": False, "matmul_nbits": False, "weights_in": ""},
            "mlir": {"weights_as_parameters": False, "drop_guards": False}}


def loaded_arguments(native: Any) -> Structure:
    """How a loaded capture, or a family, is called from Python."""
    arguments = parse(native.argument_structure)
    call = arguments.kind == "tuple" and len(arguments.children) == 2 and (
        arguments.children[0].kind == "tuple" and arguments.children[1].kind == "map")
    if call:
        return arguments
    return Structure("tuple", children=(  # captured from C++
        Structure("tuple", children=arguments.children, rebuild=tuple),
        Structure("map", rebuild=lambda _: {})), rebuild=tuple)


class _Arguments:
    """Takes the arguments of a call apart; they must be made as those of the example were."""

    def __init__(self, structure: Structure):
        self.structure = structure

    def flatten(self, inputs: Sequence, kwargs: dict) -> list[torch.Tensor]:
        tensors, structure = flatten((tuple(inputs), kwargs), "arguments")
        if structure != self.structure:
            raise Error(
                f"[capture] expected arguments {_call_text(self.structure)}, received "
                f"{_call_text(structure)}; numbers and the number of tensors are part of a "
                "capture: capture again for these with flashlight.trace(model, inputs…)")
        return tensors


def _call_text(structure: Structure) -> str:
    if structure.kind != "tuple" or len(structure.children) != 2:
        return str(structure)
    positional, named = structure.children
    parts = [str(child) for child in positional.children]
    parts += [f"{key}={child}" for key, child in zip(named.keys, named.children)]
    return "(" + ", ".join(parts) + ")"


class Capture:
    """A captured program: a graph, and what must hold for it to be right.

    Called like the program. A replay computes no autograd graph, and writes what the program
    writes: buffers, parameters, arguments."""

    def __init__(self, native, arguments: Structure, results: Structure, program=None,
                 name: str = "program", by_name: bool = False):
        self._native = native
        self._arguments = _Arguments(arguments)
        self._results = results
        self._program = program  # native holds it weakly
        self._by_name = by_name  # calls never look
        self.name = name

    @classmethod
    def _of_program(cls, function, inputs, kwargs, by_name):
        tensors, arguments = flatten((tuple(inputs), kwargs), "arguments")
        modules = modules_of(function)
        program = Program(function, arguments, modules)
        native = _flashlight.Capture(program, tensors, arguments.text(), by_name, HIDDEN_FOLDERS)
        return cls(native, arguments, program.results, program, _name_of(function), by_name)

    @classmethod
    def _loaded(cls, native):
        return cls(native, loaded_arguments(native), parse(native.result_structure))

    # ---- running --------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """The same bits as the program gives. Error when a tensor has another type than the
        example's, a guard fails, or a number among the arguments is another; nothing is written
        then.

        Until the capture is confirmed a call is a look: it runs the program, returns what that
        gives, and compares: the graphs, then a replay on copies with the program, bit for bit. From
        then on calls replay. After a difference the next call is an Error that names it. What the
        program raises in a look passes through."""
        self._expect_unchanged()
        if self._by_name:
            self._expect_reads_compared()
        tensors = self._tensors(inputs, kwargs)
        looks = _flashlight.looks_taken()
        try:
            results, structure = self._native.call(tensors)
        except BaseException as error:
            if _flashlight.looks_taken() != looks and not isinstance(error, Error):
                error.add_note("[capture] in a second look: the call ran the program once more to "
                               "confirm its capture")
            raise
        if structure is not None and structure != self._results.text():
            self._results = self._program.results
        return self._results.unflatten(results)

    def replay(self, *inputs: Any, **kwargs: Any) -> Any:
        """As a call of a confirmed capture: the program does not run."""
        self._expect_unchanged()
        self._expect_reads_compared()
        return self._results.unflatten(self._native.replay(self._tensors(inputs, kwargs)))

    @property
    def trust(self) -> str:
        """'seen once', 'confirmed', or 'seen with equal inputs'."""
        return self._native.trust

    @property
    def refusal(self) -> str:
        """What the last look found, where that refuses further calls; else empty."""
        return self._native.refusal

    def evaluate(self, *inputs: Any, **kwargs: Any) -> Any:
        """The results by composit's definitions of the operations, not by torch's kernels.
        Nothing is written. Error where an operation has no definition."""
        return self._results.unflatten(self._native.evaluate(self._tensors(inputs, kwargs)))

    def check(self, *inputs: Any, strict: bool = True, float64: bool = False,
              tolerance: float = 0.0, **kwargs: Any):
        """Is the capture still the program? Captures it again on these inputs (the example's where
        none are given), compares the graphs, then every value. True where all is well; printed,
        it names the first node that differs, with module and line. Each run begins with the random
        state of the call, which is there again afterwards; the report says so where numbers are drawn.

        strict: an access to a tensor's memory that no operator makes is an error.
        float64: compare with a run in float64 too. tolerance: relative; 0 is bit for bit."""
        return self._native.check(self._tensors(inputs, kwargs), strict, float64, tolerance)

    def check_grad(self, *inputs: Any, loss: int = 0, wrt: Sequence[str] = (), **kwargs: Any):
        """Compares `grad(loss, wrt)` with autograd. True where they agree. Both begin with the
        random state of the call, which is there again afterwards."""
        return self._native.check_grad(self._tensors(inputs, kwargs), loss, list(wrt))

    def check_compiled(self, *inputs: Any, backend: str = "mosaic", every_node: bool = False,
                       alone: int = 128, options: dict[str, Any] | None = None, **kwargs: Any):
        """The errors of compiled code against float64, beside those of the program, value by value.
        Of products in a lower format, as by options={"products": "bfloat16"}, also what each costs
        the results alone, the worst first, and lines for `choices` that give back most.

        The values are those that the code of `backend` writes to memory; every_node: all of them,
        so that nothing is fused. alone: for how many products that is measured. options: of the
        backend, as for `compile`. True where no value is worse than the program's."""
        self._expect_reads_compared()
        chosen = {"name": _identifier(self.name), **(options or {})}
        return _flashlight.check_compiled(self._native, self._tensors(inputs, kwargs), backend, chosen,
                                          every_node, alone)

    def __reduce__(self):
        raise Error("[capture] a capture is neither pickled nor copied: write it by "
                    "captured.save(folder), read it by flashlight.load(folder)")

    # ---- what it is -----------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        return self._native.graph

    @property
    def example_inputs(self) -> tuple[tuple, dict]:
        """Copies of what the program was captured with: positional, and by name."""
        return self._arguments.structure.unflatten(self._native.example_arguments)

    def assumptions(self) -> list[str]:
        """What the capture holds for, a line each: pinned types, guards, constants, random draws,
        what it writes."""
        changes = self._program.changes if self._program else []
        return self._native.assumptions() + [f"{change}; a replay does not change it"
                                             for change in changes]

    def statistics(self):
        """nodes, calls, calls_by_op, parameters (elements), bytes, guards."""
        return self._native.statistics()

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by name; they share the model's memory."""
        return dict(self._native.state())

    def constants(self) -> dict[str, torch.Tensor]:
        """What the program used and nobody passed in, by its name in the graph."""
        return dict(self._native.constants())

    def visualize(self, path: str | pathlib.Path = "graph.svg", max_nodes: int = 150) -> None:
        """Draws the graph into 'x.svg', 'x.dot', or a folder of pages."""
        self.graph.visualize(path, max_nodes)

    def _repr_svg_(self) -> str:
        return self.graph._repr_svg_()

    def __repr__(self) -> str:
        return f"<Capture of {self.name}: {len(self.graph)} nodes>"

    # ---- what it becomes ------------------------------------------------------------------------

    def grad(self, loss: int = 0, wrt: Sequence[str] = ()) -> "Gradient":
        """The derivative of result number `loss`, a single number, by the inputs named (all
        trainable parameters, if none is)."""
        self._expect_reads_compared()
        return Gradient(self._native.grad(loss, list(wrt)), self._arguments, self.name)

    def source(self, backend: str = "cpp", **options: Any) -> str:
        """The C++ that `compile` would compile, which takes the same options: `link_aten=True` of "cuda"."""
        options.setdefault("name", _identifier(self.name))
        return _flashlight.source_of(self.graph, backend, options)

    def compile(self, backend: str = "cpp", **options: Any) -> "Compiled":
        """Compiled code, as a module: "cpp" is C++ to be read, "mosaic" is fast.
        `confirm=flashlight.confirm(…)` confirms the capture first.

        name, flags (list of the compiler's), and the options of the backend, which
        `flashlight.backends()` lists. Error that lists operations there is no code for, or the
        backends or options there are."""
        if isinstance(request := options.pop("confirm", None), confirm):
            request.look_at(self)
        self._expect_reads_compared()
        return Compiled(self, backend, options)

    def quantize(self, examples: Sequence[Sequence[Any]] = (),
                 **options: Any) -> "tuple[Capture, Any]":
        """The capture with weights of few bits, and a report, whose str() is a table.

        weights: "int8" or "int4"; group: inputs that share a scale, 0: all; symmetric: without
        zero points; scales: "float32", "float16" or "bfloat16"; activations: "unchanged",
        "by_token" or "calibrated"; all_readers: who else reads what a calibrated layer reads, as a
        residual's sum does, gets it rounded, too; method: "nearest", "gptq", "awq" or "smooth", by
        `examples`, lists of arguments, or by the capture's own; layers, exclude: names of weights, as
        in "encoder.*"; max_error: as many layers as keep results within this part of
        their spread; measure: errors of outputs, True by default; backend: who runs the examples,
        "mosaic" by default; alone="aten": measures, by torch's operators, what each layer alone costs
        the results."""
        self._expect_reads_compared()
        flat = [self._arguments.flatten(example, {}) for example in examples]
        native, report = self._native.quantized(flat, options)
        return Capture(native, self._arguments.structure, self._results), report

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes graph, weights and example into a folder; replaces a capture that is there."""
        self._expect_reads_compared()
        self._native.save(pathlib.Path(folder))

    def export(self, file: str | pathlib.Path, **options: Any) -> None:
        """Writes a file of other tools, which its ending says: `.pt2` for `torch.export.load` and
        AOTInductor, `.onnx` for onnxruntime, OpenVINO and others, `.mlir` for XLA and IREE, which
        are modules of StableHLO. Options of `.pt2`:
        `parameters_as_buffers`, parameters that the program writes become buffers, which
        AOTInductor needs. Of `.onnx`: `opset` (20), and `drop_guards`, without the Boolean outputs
        that say whether the capture holds, and `weights_in`, the folder where the capture is saved: the
        model, beside that folder or in it, refers to the weights there, and `matmul_nbits`, onnxruntime's own
        operator for products with weights of 4 bits in groups. Of `.mlir`: `drop_guards`,
        and `weights_as_parameters`, which IREE reads by name. Error that lists all operators the format has no form
        for. docs/interchange.md says more."""
        self._expect_reads_compared()
        export(self._native, file, options)

    def _expect_unchanged(self) -> None:
        changed = self._program and self._program.changed()
        rates = self._program and self._program.rates
        if rates and not changed and self.trust == "confirmed" and (rate := rates.changed()):
            raise Error(f"[capture] {rate} since the program was captured, where it is a constant: "
                        "pass it as a tensor that the program gives to its optimizer, name it in "
                        "trace_family(…, numbers=…), or capture again")
        if changed:
            raise Error(f"[capture] {changed} since the program was captured; capture again: "
                        "flashlight.trace(model, inputs…)")

    def _expect_reads_compared(self) -> None:
        """A look shows whether anything depends on what the program read on the host."""
        if self._program and self._native.trust == "seen once":
            refuse_large_reads(self._program.large_reads)

    def _tensors(self, inputs, kwargs) -> list[torch.Tensor]:
        if not inputs and not kwargs:
            structure = self._arguments.structure
            if structure.children[0].children or structure.children[1].children:
                return self._native.example_arguments
        return self._arguments.flatten(inputs, kwargs)


class Compiled(torch.nn.Module):
    """A captured program as compiled C++: called like the program, on tensors of the same types.

    Its parameters and buffers are the model's own, under the same names. Under autograd a call is
    one function, whose backward is compiled C++ as well. By "mosaic" they are packed at the first
    call, so they are in memory twice until `release` has let go of them, and the model and its
    capture are gone, too."""

    def __init__(self, capture: Capture, backend: str, options: dict):
        super().__init__()
        options.setdefault("name", _identifier(capture.name))
        self._arguments, self._results = capture._arguments, capture._results
        self._compiled = _flashlight.CompiledCapture(capture._native, backend, options)
        for name, tensor in capture.state().items():
            _adopt(self, name, tensor)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        tensors = self._arguments.flatten(inputs, kwargs)
        return self._results.unflatten(self._compiled.run(tensors))

    def __reduce__(self):
        raise Error("[compile] compiled code is neither pickled nor copied: save its capture, and "
                    "compile that again; what was compiled before is found on disk")

    def source(self) -> str:
        """The C++ it was made of."""
        return self._compiled.source

    def release(self) -> None:
        """Lets go of parameters and buffers: this module has none from now on. Calls give the same;
        what they read or write of the model stays with the compiled code."""
        for held in (self._modules, self._parameters, self._buffers):
            held.clear()

    def profile(self, *inputs: Any, peak: float = 0.0, **kwargs: Any) -> str:
        """A table of kernels, by a backend that times them, as mosaic does: time, GFLOP/s, share of `peak` (GFLOP/s),
        GB/s."""
        tensors = self._arguments.flatten(inputs, kwargs)
        return self._compiled.profile_table(tensors, peak)


class Gradient:
    """The derivative of a captured program; a graph that torch's kernels run, without autograd."""

    def __init__(self, native, arguments: _Arguments, name: str):
        self._native = native
        self._arguments = arguments
        self.name = name

    @property
    def graph(self) -> Graph:
        """Inputs of the capture; the loss, then the gradients."""
        return self._native.graph

    @property
    def names(self) -> list[str]:
        return self._native.names

    def __call__(self, *inputs: Any, **kwargs: Any) -> tuple[torch.Tensor, dict]:
        """The loss, and the gradients by name."""
        loss, gradients = self._native.run(self._arguments.flatten(inputs, kwargs))
        return loss, dict(zip(self.names, gradients))

    def evaluate(self, *inputs: Any, **kwargs: Any) -> tuple[torch.Tensor, dict]:
        """The same by composit's definitions; nothing is written."""
        loss, gradients = self._native.evaluate(self._arguments.flatten(inputs, kwargs))
        return loss, dict(zip(self.names, gradients))

    def export(self, file: str | pathlib.Path, **options: Any) -> None:
        """As `Capture.export`: a program that gives the loss, and the gradients."""
        export(self._native, file, options)

    def source(self, backend: str = "cpp", **options: Any) -> str:
        """As `Capture.source`."""
        options.setdefault("name", _identifier(self.name) + "_gradient")
        return _flashlight.source_of(self.graph, backend, options)

    def compile(self, backend: str = "cpp", **options: Any) -> "CompiledGradient":
        """Loss and gradients as one function of compiled C++."""
        return CompiledGradient(self, backend, options)

    def _repr_svg_(self) -> str:
        return self.graph._repr_svg_()


class CompiledGradient:
    """Loss and gradients by compiled C++; called like Gradient."""

    def __init__(self, gradient: Gradient, backend: str, options: dict):
        options.setdefault("name", _identifier(gradient.name) + "_gradient")
        self._arguments, self._names = gradient._arguments, gradient.names
        self._compiled = _flashlight.CompiledGradient(gradient._native, backend, options)

    def __call__(self, *inputs: Any, **kwargs: Any) -> tuple[torch.Tensor, dict]:
        tensors = self._arguments.flatten(inputs, kwargs)
        loss, gradients = self._compiled.run(tensors)
        return loss, dict(zip(self._names, gradients))

    def source(self) -> str:
        return self._compiled.source


def _adopt(module: torch.nn.Module, name: str, tensor: torch.Tensor) -> None:
    """Registers `tensor` as "a.b.name" of nested modules."""
    *path, last = name.split(".")
    for part in path:
        if hasattr(module, part) and part not in module._modules:
            part += "_"  # what modules have themselves, as "forward"
        if part not in module._modules:
            module.add_module(part, torch.nn.Module())
        module = module._modules[part]
    if hasattr(module, last):
        return
    if isinstance(tensor, torch.nn.Parameter):
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor)


def _name_of(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _identifier(name: str) -> str:
    word = "".join(c.lower() if c.isalnum() else "_" for c in name).strip("_")
    return word if word and not word[0].isdigit() else f"program_{word}".rstrip("_")
