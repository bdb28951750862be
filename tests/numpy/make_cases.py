"""Calls functions of NumPy, and writes the calls with their results to a file that a C++ test reads.

    make_cases.py OUT.json

A case is the name of a function, its arguments by position and by name, and what NumPy gave: arrays
(dtype, shape, bytes in hexadecimal), or that it raised an exception.
"""

import itertools
import json
import sys
import warnings

import numpy as np

from case import ALL, FEW, FLOATS, INTS, REAL, WIDE, as_json, case, cases, data

warnings.simplefilter("ignore")


def elementwise():
    for name in """absolute fabs negative positive sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10
            log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sinc floor
            ceil trunc fix rint isnan isinf isfinite isreal iscomplex signbit logical_not invert conjugate real
            imag angle""".split():
        for dtype in ALL:
            x = data((3, 4), dtype, seed=1)
            if name in ("arccosh", "log", "log2", "log10", "sqrt") and np.dtype(dtype).kind in "if":
                x = np.abs(x) + x.dtype.type(1)
            if name in ("arctanh", "arcsin", "arccos") and np.dtype(dtype).kind == "f":
                x = x / x.dtype.type(5)
            if name == "reciprocal" and np.dtype(dtype).kind in "iu":
                x = np.where(x == 0, x.dtype.type(2), x)
            if np.dtype(dtype).kind == "b" and name == "reciprocal":
                x = np.ones_like(x)
            case(name, x)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.5])
    for name in """absolute negative sign sqrt cbrt exp log floor ceil rint trunc isnan isinf isfinite isneginf isposinf
            signbit tanh nan_to_num reciprocal angle""".split():
        for dtype in ["float32", "float64"]:
            case(name, special.astype(dtype))
    case("nan_to_num", special, nan=3.0, posinf=9.0, neginf=-9.0)
    for dtype in REAL:
        x = data((7,), dtype, low=-40, high=40)
        for decimals in (0, 1, -1):
            case("round", x, decimals=decimals)
        case("clip", x, -1 if np.dtype(dtype).kind != "u" else 1, 2)
        case("modf", x)


def binary():
    names = """add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin
            arctan2 hypot copysign nextafter logaddexp logaddexp2 heaviside equal not_equal less less_equal greater
            greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift
            right_shift""".split()
    for name in names:
        for left, right in itertools.product(["bool", "uint8", "int16", "int64", "float16", "float32", "float64",
                                              "complex64", "complex128"], repeat=2):
            a, b = data((2, 3), left, seed=2), data((3,), right, seed=3)
            if name in ("floor_divide", "remainder", "fmod", "divide"):
                b = np.where(b == 0, b.dtype.type(1), b)
            if name in ("power", "float_power"):
                a, b = np.abs(a) + a.dtype.type(1), np.abs(b)
                a, b = a.astype(left), b.astype(right)
            if "shift" in name:
                b = np.abs(b)
            case(name, a, b)
        for dtype in ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]:
            x = data((2, 3), dtype, seed=4)
            x = np.where(x == 0, x.dtype.type(1), x)
            for number in (2, 2.5, True, 1j):
                if name in ("power", "float_power"):
                    x = np.abs(x).astype(dtype)
                case(name, x, number)
                case(name, number, x)
        case(name, data((2, 3), "float64"), data((2,), "float64"))  # does not broadcast
        case(name, data((2, 1, 3), "float32"), data((4, 1), "float32", seed=9))
    special = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    for name, dtype in itertools.product(names, FLOATS):
        if "bitwise" not in name and "shift" not in name:
            case(name, special.astype(dtype)[:, None], special.astype(dtype))
    for name in ("floor_divide", "remainder", "fmod", "divide", "power"):
        for dtype in INTS:
            case(name, np.array([3, -3, 0]).astype(dtype), np.array([0, 0, 0], dtype=dtype))
    limits = {dtype: np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 7], dtype) for dtype in INTS + WIDE}
    for name, dtype in itertools.product(("add", "subtract", "multiply", "maximum", "less", "floor_divide",
                                          "remainder", "bitwise_xor"), limits):  # fmt: skip
        case(name, limits[dtype], limits[dtype][::-1].copy())
        case(name, limits[dtype], 3)
    for name, dtype in itertools.product(("negative", "absolute", "square", "sign", "sum", "prod", "max", "invert",
                                          "mean"), limits):  # fmt: skip
        case(name, limits[dtype])
    for left, right in itertools.product(WIDE, INTS + WIDE + FLOATS):
        for name in ("add", "multiply", "divide"):
            case(name, data((3,), left, seed=31), data((3,), right, seed=32))
            case(name, data((3,), right, seed=31), data((3,), left, seed=32))
    for number in (300, -1):
        for name in ("add", "maximum", "less", "equal", "greater", "multiply"):
            case(name, data((3,), "uint8"), number)
    case("power", data((3,), "int32"), -2)
    condition = data((2, 3), "bool")
    for left, right in itertools.product(FEW, repeat=2):
        case("where", condition, data((3,), left), data((2, 1), right))
    for number in (1, 2.5, True):
        case("where", condition, number, 0)
        for dtype in FEW:
            case("where", condition, data((3,), dtype), number)
    case("where", data((2, 3), "int32"), 1.0, data((4,), "float32"))
    a, b = np.array([1, 2, np.inf, np.nan, 1e10]), np.array([1.00001, 2.1, np.inf, np.nan, 1.0000001e10])
    for dtype in ("float32", "float64"):
        case("isclose", a.astype(dtype), b.astype(dtype))
        case("isclose", a.astype(dtype), b.astype(dtype), equal_nan=True)
        case("isclose", a.astype(dtype), b.astype(dtype), rtol=0.1, atol=0.0)
        case("allclose", a.astype(dtype), b.astype(dtype))
    case("isclose", np.arange(4), np.arange(4) + 1)
    case("array_equal", np.arange(4), np.arange(4.0))
    case("array_equal", np.arange(4), np.arange(5))


def reductions():
    axes = [None, 0, 1, -1, (0, 2), (2, 1, 0), ()]
    names = """sum prod mean max min var std nansum nanprod nanmean nanmax nanmin nanvar nanstd any all count_nonzero
            ptp median""".split()
    for name in names:
        for dtype in ALL:
            x = data((2, 3, 4), dtype, seed=5, low=-2, high=2)
            for axis, keepdims in itertools.product(axes, (False, True)):
                if axis == () and name == "median":
                    continue  # NumPy's median of no axes is that of all
                case(name, x, axis=axis, keepdims=keepdims)
        case(name, data((2, 3), "float64"), axis=2)
        case(name, data((2, 3), "float64"), axis=(0, 0))
        case(name, data((2, 3), "float64"), axis=-3)
        case(name, data((), "float32"))
        case(name, data((0, 3), "float64"), axis=1)
        case(name, data((2, 3, 0), "int64"), axis=0)
    for name in ("max", "min"):
        case(name, data((0, 3), "float64"))
        case(name, data((2, 0), "float64"), axis=1)
    for dtype in FEW + ["uint8", "int8", "float16"]:
        x = data((3, 4), dtype, seed=6)
        for name in ("sum", "prod", "mean"):
            case(name, x, axis=1, dtype=np.float32 if np.dtype(dtype).kind != "c" else np.complex64)
            case(name, x, dtype=np.float64 if np.dtype(dtype).kind != "c" else np.complex128)
        for name in ("var", "std", "nanvar"):
            case(name, x, axis=0, ddof=1)
            case(name, x, ddof=0.5)
        for name in ("cumsum", "cumprod"):
            for axis in (None, 0, -1):
                case(name, x, axis=axis)
            case(name, x, axis=5)
        case("diff", x)
        case("diff", x, n=2, axis=0)
        case("average", x, axis=1)
        case("average", x, axis=1, weights=data((4,), "float32", low=1, high=4))
        case("average", x, weights=data((3, 4), "int32", low=1, high=4))
    statistics()
    for dtype in REAL:
        x = data((3, 4), dtype, seed=7, low=-1, high=1)
        for name in ("argmax", "argmin"):
            for axis, keepdims in itertools.product((None, 0, -1), (False, True)):
                case(name, x, axis=axis, keepdims=keepdims)
            case(name, x, axis=2)
            case(name, x[:0], axis=0)
    x = data((3, 4), "float64", seed=8)
    x[0, 1] = x[2, 3] = np.nan
    x[1] = np.nan
    for name in names + ["argmax", "argmin", "cumsum"]:
        if name == "ptp":
            continue
        for axis in (None, 0, 1):
            case(name, x, axis=axis)


def statistics():
    for dtype in INTS + FLOATS:
        x = data((3, 4, 2), dtype, seed=25)
        for q, axis, keepdims in itertools.product((0.0, 0.3, 0.5, 0.95, 1.0), (None, 1, (0, 2)), (False, True)):
            case("quantile", x, q, axis=axis, keepdims=keepdims)
        case("quantile", x, 1.5)
        case("percentile", x, 25.0, axis=0)
        case("digitize", x, np.array([-1.0, 0.5, 2.0]))
        case("digitize", x, np.array([-1.0, 0.5, 2.0]), right=True)
        case("interp", x, np.array([-2.0, -1.0, 0.5, 3.0]), np.array([1.0, -3.0, 2.0, 7.0]))
    for dtype in FEW:
        for mode in ("full", "same", "valid", "other"):
            case("convolve", data((7,), dtype), data((3,), "float32", seed=4), mode=mode)
            case("convolve", data((2,), dtype), data((5,), dtype, seed=4), mode=mode)
            case("convolve", data((6,), dtype), data((4,), dtype, seed=4), mode=mode)
        case("cov", data((3, 5), dtype))
        case("cov", data((3, 5), dtype), ddof=0)
        if dtype != "bool":
            case("corrcoef", data((3, 5), dtype))
            case("trapezoid", data((3, 5), dtype), dx=0.5)
            case("trapezoid", data((3, 5), dtype), axis=0)
    case("convolve", data((100,), "float64"), np.array([-0.5, 0.0, 0.5]), mode="same")
    case("convolve", data((0,), "float64"), np.array([1.0]))
    x = data((3, 4), "float64", seed=8)
    x[0, 1] = x[2, 3] = np.nan
    for name, axis in itertools.product(("nancumsum", "nancumprod", "nanargmax", "nanargmin"), (None, 0, 1)):
        case(name, x, axis=axis)
    case("quantile", x, 0.3, axis=1)
    case("interp", np.array([np.nan, 0.5]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def shapes():
    for dtype in FEW:
        x, y = data((2, 3, 4), dtype, seed=10), data((2, 3, 4), "float32", seed=11)
        for shape in ((6, 4), (-1,), (4, -1, 2), (24, 1), (5, -1), (7,), (-1, -1)):
            case("reshape", x, shape)
        case("ravel", x)
        case("transpose", x)
        for axes in ((1, 0, 2), (2, -2, 0), (0, 0, 1), (0, 1), (0, 1, 3)):
            case("transpose", x, axes)
        case("swapaxes", x, 0, -1)
        case("swapaxes", x, 0, 3)
        for source, target in ((0, 2), (-1, 0), ((0, 1), (2, 0)), ((0, 1), (2,)), (0, 5)):
            case("moveaxis", x, source, target)
        for axis in (None, 1, (0, 2), 3):
            case("squeeze", x[:1, :, :1], axis=axis)
        for axis in (0, -1, (0, 2), (1, -1), 7):
            case("expand_dims", x, axis)
        for shape in ((2, 3, 4), (5, 2, 3, 4), (2, 3, 5), (3, 4)):
            case("broadcast_to", x, shape)
        for name, axis in itertools.product(("concatenate", "stack"), (0, 1, -1, 5)):
            case(name, (x, y), axis=axis)
        case("concatenate", (x, y[:, :2]), axis=1)
        case("concatenate", (x, y[:, :2]), axis=0)
        case("concatenate", (x, y[0]), axis=None)
        for name in ("hstack", "vstack", "dstack", "column_stack"):
            case(name, (x[0, 0], y[0, 0]))
            case(name, (x[0], y[0]))
        for sections in (1, 2, 4, 3, 0):
            case("split", x, sections, axis=2)
            case("array_split", x, sections, axis=2)
        for places in ((1,), (1, 3), (3, 1), (0, 9), (-1,)):
            case("split", x, places, axis=2)
        case("hsplit", x, 3)
        case("vsplit", x, 2)
        for axis in (None, 0, 2):
            case("append", x, y, axis=axis)
            case("delete", x, [1], axis=axis)
            case("delete", x, [0, -1], axis=axis)
            case("insert", x, 1, 1, axis=axis)
            case("insert", x, -1, 0, axis=axis)
        case("delete", x, [5], axis=1)
        case("insert", x, 5, 0, axis=1)
        for repetitions in ((2,), (1, 2), (2, 1, 1, 3), (0,)):
            case("tile", x, repetitions)
        for repeats, axis in ((2, None), (3, 1), (0, 0), ((1, 0, 2), 1), ((1, 2), 1)):
            case("repeat", x, repeats, axis=axis)
        for axis in (None, 0, (1, 2), 3):
            case("flip", x, axis=axis)
        for k in range(-1, 4):
            case("rot90", x, k=k)
        case("rot90", x, k=1, axes=(2, 0))
        for shift, axis in ((1, None), (-2, 1), (5, 2), ((1, 2), (0, 1)), (1, (0, 1)), ((1, 2), 0)):
            case("roll", x, shift, axis=axis)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            for width in (((1, 2), (0, 0), (3, 1)), ((0, 0), (5, 4), (1, 0))):
                case("pad", x, width, mode=mode)
            case("pad", x, 2, mode=mode)
        case("pad", x, ((1, 2), (0, 0)), mode="constant")
        case("pad", x[0], 1, mode="constant", constant_values=1)
        case("astype", x, np.float32, function=lambda a, dtype: a.astype(dtype))
        case("astype", x, np.int32, function=lambda a, dtype: a.astype(dtype))
        case("astype", x, np.bool_, function=lambda a, dtype: a.astype(dtype))


def indices():
    def item(x, index):
        case("get_item", x, index, function=lambda a, i: a[tuple(i)])
        value = np.asarray(x[0, 0, 0]) + x.dtype.type(1)

        def assign(a, i, v):
            result = a.copy()
            result[tuple(i)] = v
            return result

        case("set_item", x, index, value, function=assign)
        try:
            chosen = x[tuple(index)]
        except (IndexError, ValueError):
            return
        case("set_item", x, index, data(chosen.shape, "float64", seed=13), function=assign)
        case("set_item", x, index, data(chosen.shape[-1:], "int32", seed=13), function=assign)
        case("set_item", x, index, data((7,), "int32", seed=13), function=assign)

    two, few = np.array([1, 0]), np.array([[0, 2], [-1, 1]])
    mask = np.array([True, False, True])
    everything = slice(None)
    for dtype in ("int32", "float32", "complex128"):
        x = data((2, 3, 4), dtype, seed=12)
        for index in (
            [0], [-1], [2], [-3], [0, 1], [0, 1, 2], [0, 1, 2, 0], [1, everything, -1], [Ellipsis, 0], [0, Ellipsis],
            [0, Ellipsis, 1], [Ellipsis, Ellipsis], [None], [Ellipsis, None], [None, 0, None, slice(1, 3)],
            [slice(1, None)], [everything, slice(None, None, 2)], [everything, slice(None, None, -1)],
            [everything, everything, slice(3, 0, -2)], [everything, everything, slice(-3, -1)],
            [everything, everything, slice(10, -10, -3)], [everything, slice(2, 1)], [everything, slice(1, 2, -1)],
            [slice(None, None, 0)], [two], [everything, few], [two, two], [two, everything, two], [two, None, two],
            [0, everything, two], [everything, 0, two], [0, two], [two, slice(1, 3)], [Ellipsis, two],
            [two, Ellipsis, two],
            [few, two], [two, np.array([0, 1, 2])], [everything, mask], [mask], [everything, mask, two],
            [x.real > 0], [everything, everything, np.array([True, False, True, True]), None],
            [Ellipsis, np.array([True, False, True, True])], [None, Ellipsis, mask], [Ellipsis, np.ones((3, 4), bool)],
        ):  # fmt: skip
            item(x, index)
    x = data((2, 3, 4), "float32", seed=14)
    for places in (two, few, np.array(2), np.array([], dtype=np.int64)):
        for axis in (None, 1, -1):
            case("take", x, places, axis=axis)
    for mode in ("wrap", "clip"):
        case("take", x, np.array([-9, 9, 4, -1]), axis=2, mode=mode)
    case("take", x, two, axis=3)
    along = np.array([[[3, 0]]])
    case("take_along_axis", x, np.broadcast_to(along, (2, 3, 2)), 2)
    case("take_along_axis", x, along, 2)
    case("take_along_axis", x, two, 2)
    case("take_along_axis", x, np.array([5, 2]), None)

    def put_along_axis(a, *arguments):
        result = a.copy()
        np.put_along_axis(result, *arguments)
        return result

    case("put_along_axis", x, np.broadcast_to(along, (2, 3, 2)), 7, 2, function=put_along_axis)
    case("choose", np.array([[0, 1], [1, 0]]), [data((2, 2), "float32"), data((2,), "int32", seed=2)])
    for dtype in FEW:
        case("nonzero", data((3, 4), dtype))
        if dtype != "complex128":
            case("unique", data((3, 4), dtype))


def products():
    pairs = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
             ((5, 1, 2, 3), (4, 3, 2)), ((2, 3), (2, 3)), ((), (3,))]
    for (left, right), (a, b) in itertools.product(itertools.product(FEW, repeat=2), pairs):
        x, y = data(a, left, seed=15), data(b, right, seed=16)
        for name in ("matmul", "dot", "inner"):
            case(name, x, y)
    case("matmul", np.ones((5, 10), np.uint8), np.ones((10, 3), np.uint8), dtype=np.int8)
    for left, right in itertools.product(FEW, repeat=2):
        x, y = data((2, 3), left, seed=17), data((3, 2), right, seed=18)
        case("outer", x, y)
        case("vdot", x, y)
        case("kron", x, y)
        case("cross", x, data((3,), right, seed=19))
        case("tensordot", x, y, 1)
        case("tensordot", x, y, 0)
        case("tensordot", x, y, ((0, 1), (1, 0)))
        case("tensordot", x, y, ((0,), (0,)))
        for subscripts in ("ij,jk->ik", "ij,jk", "ij,ji->", "ij,jk->ki", "ij,kl->ijkl", "...j,jk->...k", "ij, jk -> k",
                           "ij,ij->"):
            case("einsum", subscripts, x, y)
    for dtype in FEW:
        x = data((3, 3, 4), dtype, seed=20)
        case("einsum", "iij->ij", x)
        for n in (0, 1, 2, 5):
            case("linalg.matrix_power", data((2, 3, 3), dtype, seed=26, low=-1, high=1), n)
        case("linalg.matrix_power", x, 2)
        case("einsum", "ijk->", x)
        case("einsum", "iij", x)
        for offset, axes in itertools.product((0, 1, -1), ((0, 1), (1, 2), (2, 0), (0, 0), (0, 3))):
            case("diagonal", x, offset, *axes)
            case("trace", x, offset, *axes)
        for k in (-1, 0, 2):
            case("diag", x[0], k=k)
            case("diag", x[0, 0], k=k)
            case("tril", x, k=k)
            case("triu", x, k=k)
            case("tril", x[0, 0], k=k)
        for axis, order in itertools.product((0, -1), (None, 1, 2, 3, np.inf, -np.inf, 0)):
            case("linalg.norm", x, axis=axis, ord="inf" if order == np.inf else "-inf" if order == -np.inf else order,
                 function=lambda a, axis, ord: np.linalg.norm(
                     a, axis=axis, ord=float(ord) if isinstance(ord, str) else ord))  # fmt: skip
        case("linalg.norm", x)
        case("linalg.norm", x, axis=(0, 1), keepdims=True)


def sorting():
    for dtype in REAL:
        x = data((3, 5), dtype, seed=21, low=-2, high=2)
        for axis in (-1, 0, None, 2):
            case("sort", x, axis=axis)
            case("argsort", x, axis=axis, function=lambda a, axis: np.argsort(a, axis, kind="stable"))
        for other, side in itertools.product(("int64", "float32"), ("left", "right", "middle")):
            case("searchsorted", np.sort(x[0]), data((2, 3), other, seed=22), side=side)
        case("searchsorted", np.sort(x[0]), 1)
        case("searchsorted", x, data((2,), "float32"))
    with_nan = np.array([2, np.nan, -1, np.inf, np.nan, -np.inf])
    case("sort", with_nan)
    case("argsort", with_nan, function=lambda a: np.argsort(a, kind="stable"))


def creation():
    for dtype in FEW:
        for name in ("zeros", "ones"):
            case(name, (2, 3), dtype=np.dtype(dtype))
        case("full", (2,), 3, dtype=np.dtype(dtype))
        x = data((2, 3), dtype)
        for name in ("zeros_like", "ones_like"):
            case(name, x)
        case("full_like", x, 2.5)
        case("eye", 3, 4, k=1, dtype=np.dtype(dtype))
        if dtype not in ("bool", "complex128"):
            case("arange", 2, 9, 2, dtype=np.dtype(dtype))
            case("linspace", -3.0, 7.5, num=6, dtype=np.dtype(dtype))
    case("zeros", (2, -1))
    for value in (3, 2.5, True, 1 + 2j):
        case("full", (2, 2), value)
    for arguments in ((5,), (5.5,), (2, 7), (7, 2), (7, 2, -1), (0.1, 1.0, 0.1), (1, 2, 0.3), (5, -5, -2.5),
                      (3, 3), (0, 5, 0)):
        case("arange", *arguments)
    for arguments in ((0.0, 1.0), (0.0, 1.0, 7), (3.0, -2.5, 11), (1.0, 2.0, 1), (1.0, 2.0, 0), (1.0, 2.0, -1)):
        case("linspace", *arguments)
    case("linspace", 0.0, 2.0, 5, endpoint=False)
    case("logspace", 0.0, 2.0, 5)
    case("eye", 3)
    for k in (-1, 0, 2):
        case("tri", 3, 4, k=k)
    for limits in ((1.0, 1000.0), (-2.0, -0.5), (0.0, 1.0)):
        case("geomspace", *limits, 5)
    case("eye", 3, k=-1)
    case("identity", 2)
    case("indices", (2, 3))
    x, y = data((3,), "int32"), data((2,), "float32")
    case("meshgrid", x, y)
    case("meshgrid", x, y, indexing="ij")
    case("meshgrid", x, y, indexing="zz")


def random():
    def drawn(seed, *calls):
        rng = np.random.default_rng(seed)
        return [np.asarray(getattr(rng, name)(*arguments)) for name, *arguments in calls]

    float32, float64 = np.float32, np.float64
    for seed in (0, 1, 42, 2**32 + 5, 2**63):
        for calls in (
            [("random", (2, 3), float64)], [("random", (2, 3), float32)],
            [("random", (3,), float32), ("random", (2,), float64), ("random", (4,), float32),
             ("random", (1,), float32)],
            [("random", (1,), float32), ("random", (0,), float32), ("random", (5,), float64), ("random", (), float32)],
            [("random", (), float32), ("integers", 0, 10, (7,)), ("random", (3,), float32)],
            [("uniform", -2.0, 3.0, (4,)), ("random", (2,), float64)], [("integers", -5, 2**40, (3, 2))],
            [("integers", 0, 2**32, (5,)), ("permutation", 10), ("random", (2,), float32)],
            [("integers", -(2**63), 2**63 - 1, (4,))], [("integers", 0, 1, (4,)), ("random", (1,), float64)],
            [("integers", 0, 3 * 2**30, (40,)), ("random", (1,), float32)],
            [("integers", 0, 3 * 2**61, (40,)), ("random", (1,), float32)],
            [("random", (3,), np.int32)], [("integers", 3, 3, (2,))],
        ):  # fmt: skip
            named = [[name, *map(as_json, arguments)] for name, *arguments in calls]
            case("random", str(seed), named, function=lambda seed, _, calls=calls: drawn(int(seed), *calls))


FAMILIES = (elementwise, binary, reductions, shapes, indices, products, sorting, creation, random)


def main():
    for family in FAMILIES:
        before = len(cases)
        family()
        print(f"{family.__name__}: {len(cases) - before} cases")
    with open(sys.argv[1], "w") as file:
        json.dump(cases, file)


if __name__ == "__main__":
    main()
