"""One call of a function of NumPy, as make_cases.py writes it down."""

import numpy as np

BOOL, INTS, FLOATS = ["bool"], ["int8", "uint8", "int16", "int32", "int64"], ["float16", "float32", "float64"]
WIDE = ["uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
REAL = BOOL + INTS + FLOATS
ALL = REAL + COMPLEX
FEW = ["bool", "int32", "int64", "float32", "float64", "complex128"]

# Complex numbers have no order here, where NumPy compares the real parts first.
ORDERED = """less less_equal greater greater_equal maximum minimum fmax fmin max min nanmax nanmin ptp median round rint
        clip""".split()

cases = []


def is_complex(value):
    if isinstance(value, (list, tuple)):
        return any(map(is_complex, value))
    return np.iscomplexobj(value)


def data(shape, dtype, seed=0, low=-4, high=4):
    """Numbers of `dtype` from `low` to `high`; quarters where it has them."""
    rng = np.random.default_rng([seed, *map(int, shape)])
    dtype = np.dtype(dtype)
    numbers = rng.integers(4 * low, 4 * high + 1, shape) / 4
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        return np.abs(numbers).astype(dtype)
    if dtype.kind == "c":
        return (numbers + 1j * rng.integers(4 * low, 4 * high + 1, shape) / 4).astype(dtype)
    return numbers.astype(dtype)


def divides_by_zero(a, b):
    return np.result_type(a, b).kind in "biu" and np.any(np.asarray(b) == 0)


def as_json(value):
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, np.ndarray) or isinstance(value, np.generic):
        array = np.ascontiguousarray(value)
        return {"dtype": array.dtype.name, "shape": list(np.shape(value)), "bytes": array.tobytes().hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if value is Ellipsis:
        return "..."
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return value


def case(name, *positional, function=None, **named):
    """`function`: NumPy's, where it is not np.name."""
    if function is None:
        function = np
        for part in name.split("."):
            function = getattr(function, part)
    entry = {"name": name, "args": as_json(positional), "named": {k: as_json(v) for k, v in named.items()}}
    try:
        if name in ORDERED and is_complex(positional):
            raise TypeError("complex numbers have no order")
        if name in ("floor_divide", "remainder", "fmod") and divides_by_zero(*positional):
            raise ZeroDivisionError("an error as in torch, where NumPy warns and gives 0")
        result = function(*positional, **named)
        entry["results"] = as_json(list(result) if isinstance(result, (list, tuple)) else [np.asarray(result)])
    except (ArithmeticError, TypeError, ValueError, IndexError) as error:
        entry["error"] = f"{type(error).__name__}: {error}"
    cases.append(entry)
