"""Whether two arrays are the same up to rounding; as tests/agreement.h, with its tolerances."""

import numpy as np

# Relative and absolute, of one operation; the absolute one in units of the largest element, if that
# is more than 1. The table of tests/agreement.cpp.
TOLERANCES = {"float16": (2e-3, 1e-3), "float32": (2e-6, 1e-6), "complex64": (2e-6, 1e-6),
              "float64": (1e-11, 1e-12), "complex128": (1e-11, 1e-12)}


def difference(ours, expected, times=1):
    """Empty, or where they differ. Dtypes and shapes must agree."""
    expected = np.asarray(expected)
    if type(ours) is not np.ndarray:
        return f"expected a numpy.ndarray, received {type(ours).__name__}"
    if (ours.dtype, ours.shape) != (expected.dtype, expected.shape):
        return f"expected {expected.dtype}{list(expected.shape)}, received {ours.dtype}{list(ours.shape)}"
    relative, absolute = (times * t for t in TOLERANCES.get(expected.dtype.name, (0, 0)))
    parts = [(ours, expected)]
    if expected.dtype.kind == "c":
        parts = [(ours.real, expected.real), (ours.imag, expected.imag)]
    with np.errstate(all="ignore"):
        size = np.zeros(expected.shape)
        if expected.dtype.kind in "fc":
            size = np.abs(np.where(np.isfinite(expected), expected, 0))
        allowed = relative * size.astype(float) + absolute * max(1.0, float(size.max(initial=0)))
        same = np.ones(expected.shape, bool)
        for a, b in parts:
            if expected.dtype.kind in "fc":
                a, b = a.astype(float), b.astype(float)
                near = (a == b) | (np.abs(a - b) <= allowed) | (np.isnan(a) & np.isnan(b))
            else:
                near = a == b
            same &= near
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"element {list(at)}: expected {expected[at]}, received {ours[at]}"
