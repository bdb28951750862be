"""numpy.linalg: what composit has of it."""

from composit import _composit

norm = _composit.numpy.linalg.norm
matrix_power = _composit.numpy.linalg.matrix_power

__all__ = ["matrix_power", "norm"]
