"""Training: inputs are changed along their gradients.

    optimizer = adam_optimizer(learning_rate=1e-3)      # once: it keeps moments between steps
    for batch in batches:
        loss = ...
        weights = optimize(weights, chain_rule({loss: loss}, weights), optimizer)

Optimizers have torch.optim's names, defaults and formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from composit import _composit
from composit._composit import Error, LazyTensor
from composit.numpy._creation import held
from composit.numpy._evaluation import evaluate as _evaluate

__all__ = ["Optimizer", "adam_optimizer", "adamw_optimizer", "optimize", "sgd_optimizer"]


class Optimizer:
    """How an input follows from its gradient, and what is kept of it between steps."""

    def __init__(self, update: Any):
        self._update = update
        self._state: list[list[np.ndarray]] | None = None  # per input; None before the first step

    def step(self, inputs: Sequence[LazyTensor],
             gradients: Sequence[LazyTensor]) -> list[list[LazyTensor]]:
        """Per input its new value, then its new state."""
        state = self._state or [self._first_state(value) for value in inputs]
        if len(state) != len(inputs):
            raise Error(f"[optimize] the optimizer keeps the state of {len(state)} inputs, received "
                        f"{len(inputs)}; make one optimizer per list of inputs")
        return [self._update(value, gradient, [held(kept, "state") for kept in kept_of])
                for value, gradient, kept_of in zip(inputs, gradients, state)]

    def keep(self, state: list[list[np.ndarray]]) -> None:
        """The state that the next step starts from."""
        self._state = state

    def _first_state(self, value: LazyTensor) -> list[np.ndarray]:
        return [np.zeros((), np.float64) if is_count else np.zeros(value.shape, value.dtype)
                for _, is_count in self._update.state]


def sgd_optimizer(learning_rate: float = 1e-3, *, momentum: float = 0.0, dampening: float = 0.0,
                  weight_decay: float = 0.0, nesterov: bool = False) -> Optimizer:
    """torch.optim.SGD. Keeps something between steps with `momentum` only."""
    return Optimizer(_composit.nn.sgd(learning_rate, momentum=momentum, dampening=dampening,
                                      weight_decay=weight_decay, nesterov=nesterov))


def adam_optimizer(learning_rate: float = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999),
                   eps: float = 1e-8, weight_decay: float = 0.0,
                   amsgrad: bool = False) -> Optimizer:
    """torch.optim.Adam."""
    return Optimizer(_composit.nn.adam(learning_rate, beta1=betas[0], beta2=betas[1], eps=eps,
                                       weight_decay=weight_decay, amsgrad=amsgrad))


def adamw_optimizer(learning_rate: float = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999),
                    eps: float = 1e-8, weight_decay: float = 1e-2,
                    amsgrad: bool = False) -> Optimizer:
    """torch.optim.AdamW."""
    return Optimizer(_composit.nn.adamw(learning_rate, beta1=betas[0], beta2=betas[1], eps=eps,
                                        weight_decay=weight_decay, amsgrad=amsgrad))


def optimize(inputs: Sequence[LazyTensor], gradients: Sequence[LazyTensor],
             optimizer: Optimizer, evaluate: Callable[..., Any] = _evaluate) -> list[LazyTensor]:
    """One step: new inputs of the same names, which hold their new values.

    evaluate: takes LazyTensors, gives their values (a tuple for several); composit.evaluate
    otherwise. `functools.partial(composit.evaluate, backend="mosaic")` compiles the step once."""
    if len(inputs) != len(gradients):
        raise Error(f"[optimize] expected a gradient for each of {len(inputs)} inputs, received "
                    f"{len(gradients)}")
    steps = optimizer.step(inputs, gradients)
    wanted = [tensor for step in steps for tensor in step]
    computed = evaluate(*wanted)
    values = iter([computed] if len(wanted) == 1 else computed)
    taken = [[np.asarray(next(values)) for _ in step] for step in steps]
    optimizer.keep([kept for _, *kept in taken])
    return [held(new[0].astype(old.dtype, copy=False), "input", old.name)
            for old, new in zip(inputs, taken)]
