"""Arrays as NumPy has them, lazily: graphs that are printed, drawn, rewritten, differentiated,
evaluated and compiled. Needs no torch.

    import composit as cnp
    x = cnp.random.random((5, 10))
    y = cnp.exp(x + 1)                        # a graph; nothing is computed
    cnp.evaluate(y)                           # a numpy.ndarray
    cnp.evaluate(y, backend="mosaic")         # by compiled kernels
    y.graph.visualize("graph.svg")

`composit.numpy` has NumPy's functions (all of them are names of `composit` as well), `composit.nn`
torch.nn.functional's and optimizers, `composit.types` the types, `composit.ks` programs of Knossos'
language.
"""

import pathlib as _pathlib

import numpy as _numpy

from composit import _composit
from composit._composit import (
    Error,
    Graph,
    InternalError,
    LazyTensor,
    Node,
    ValuesNeeded,
    backends,
    load_gguf,
    load_onnx,
    load_plugin,
    load_pt2,
    parse,
    pass_names,
    quantize,
    save_onnx,
    save_stablehlo,
    with_values,
)

# Files that are never the line of the program which an error or a node names.
_composit.hide_lines([str(_pathlib.Path(__file__).parent) + "/",
                      str(_pathlib.Path(_numpy.__file__).parent) + "/"])

from composit import numpy, types  # noqa: E402  what stands above comes first
from composit.numpy import *  # noqa: E402, F403
from composit import ks, nn  # noqa: E402
from composit._jax import jax  # noqa: E402
from composit.types import visualize  # noqa: E402

__all__ = ["Error", "Graph", "InternalError", "LazyTensor", "Node", "ValuesNeeded", "backends",
           "jax", "ks", "load_gguf", "load_onnx", "load_plugin", "load_pt2", "nn", "numpy", "parse", "pass_names",
           "quantize", "save_onnx", "save_stablehlo", "types", "visualize", "with_values", *numpy.__all__]
