"""Capture of torch programs as graphs; derivatives and compiled C++ of them.

    captured = flashlight.trace(model, x)       # runs the model once
    captured(x2)                                # the same bits as model(x2), which runs once more
    captured(x3)                                # from here on, a replay
    print(captured.assumptions())
    report = captured.check(x2)                 # captures again, compares node by node
    loss, gradients = captured.grad()(x2)
    fast = captured.compile("mosaic")           # an nn.Module; works under autograd
    captured.save("model"); flashlight.load("model")               # or a .pt2, an .onnx

    family = flashlight.trace_family(model, [(x2,), (x3,), (x5,)])     # one capture for all sizes

    fast = flashlight.adaptive(model)           # called like the model, faster after a while

    for token in flashlight.generate(step, prompt, max_tokens=20): …   # of a language model

    program = flashlight.ks("gmm.ks")           # Knossos' language: program.gmm(…), differentiable

`backends()` has the names of backends and their options; `load_plugin(path)` adds one. Errors are
`flashlight.Error`.
"""

import torch._ops  # the extension module needs its libraries

import composit.types
from composit import Error, backends, load_plugin

from flashlight import _flashlight, higher_order, tracer
from flashlight.adaptive import Adaptive, adaptive
from flashlight.capture import (Capture, Compiled, CompiledGradient, Gradient, confirm, seen_once,
                                trace)
from flashlight.family import Family, load_family, trace_family
from flashlight.functions import Function, compile_function, vmap
from flashlight.generate import Generation, GenerationState, generate
from flashlight.knossos import ks
from flashlight.loading import load, load_onnx, load_pt2

higher_order.let_pass(torch._ops, _flashlight.TRACE_KEY)
# composit.evaluate(y) of a tensor that was traced.
composit.types.register_tensor(torch.Tensor, tracer.lazy)

__all__ = [
    "Adaptive",
    "Capture",
    "Compiled",
    "CompiledGradient",
    "Error",
    "Family",
    "Function",
    "Generation",
    "GenerationState",
    "adaptive",
    "backends",
    "Gradient",
    "compile_function",
    "confirm",
    "generate",
    "ks",
    "load",
    "load_family",
    "load_onnx",
    "load_plugin",
    "load_pt2",
    "seen_once",
    "trace",
    "trace_family",
    "tracer",
    "vmap",
]
