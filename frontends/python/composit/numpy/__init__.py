"""NumPy, lazily: the same names, arguments, broadcasting and dtypes; functions make nodes of a graph.

    import composit.numpy as cnp
    input = cnp.ones((2, 3), dtype="float32")
    output = cnp.exp(input)                   # output.graph has 2 nodes
    cnp.evaluate(output)                      # numpy.ndarray

NumPy's own functions work on LazyTensors, too: `np.maximum(x, 0)` makes a node. What asks for
values (`if x > 0`, `float(x)`) raises `composit.ValuesNeeded`. Arrays are not written to; see
`set_item`.
"""

import numpy as _numpy
from numpy import (  # noqa: F401  dtypes and constants are NumPy's
    bool_,
    complex64,
    complex128,
    dtype,
    e,
    euler_gamma,
    float16,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)

from composit import _composit
from composit._composit import LazyTensor
from composit.numpy import linalg, random
from composit.numpy._creation import array, asarray, empty, full, ndarray, ones, zeros
from composit.numpy._evaluation import evaluate
from composit.numpy._operation import Operation, wrap_as_operation
from composit.numpy import _protocols

_PRIVATE = {"broadcast_full", "held", "linalg", "placeholder"}
_BOUND = {name: function for name, function in vars(_composit.numpy).items()
          if not name.startswith("_") and name not in _PRIVATE}
globals().update(_BOUND)

_OWN = ["LazyTensor", "Operation", "array", "asarray", "empty", "evaluate", "full", "linalg",
        "ndarray", "ones", "random", "wrap_as_operation", "zeros"]
_FROM_NUMPY = """bool_ complex64 complex128 dtype e euler_gamma float16 float32 float64 inf int8
    int16 int32 int64 nan newaxis pi uint8 uint16 uint32 uint64""".split()
__all__ = sorted({*_OWN, *_FROM_NUMPY, *_BOUND})  # noqa: PLE0604

_protocols.install(_numpy, globals())
