"""numpy.random: drawn at once by NumPy itself, with its seeds and its bits; arrays become inputs that
hold what was drawn.

    cnp.random.seed(0); x = cnp.random.random((2, 3))
    rng = cnp.random.default_rng(42); w = rng.normal(size=(3, 4))

A number (`random()` without a size) stays a number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from composit.numpy._creation import held

_NAMES = """beta binomial bytes chisquare choice dirichlet exponential f gamma geometric get_state
    gumbel hypergeometric laplace logistic lognormal logseries multinomial multivariate_normal
    negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power rand
    randint randn random random_integers random_sample ranf rayleigh sample seed set_state shuffle
    standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform
    vonmises wald weibull zipf""".split()


def _drawing(draw: Callable) -> Callable:
    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        value = draw(*args, **kwargs)
        return held(value, draw.__name__) if isinstance(value, np.ndarray) else value

    return drawn


globals().update({name: _drawing(getattr(np.random, name)) for name in _NAMES
                  if hasattr(np.random, name)})


class Generator:
    """numpy.random.Generator, whose arrays are LazyTensors."""

    def __init__(self, bit_generator: Any):
        own = isinstance(bit_generator, np.random.Generator)
        self._generator = bit_generator if own else np.random.Generator(bit_generator)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._generator, name)
        return _drawing(attribute) if callable(attribute) else attribute

    def __dir__(self) -> list[str]:
        return dir(self._generator)

    def __repr__(self) -> str:
        return repr(self._generator)


def default_rng(seed: Any = None) -> Generator:
    """As numpy.random.default_rng: the same bits for the same seed."""
    return Generator(np.random.default_rng(seed))


__all__ = ["Generator", "default_rng", *(name for name in _NAMES if name in globals())]
