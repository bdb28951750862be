"""Neural networks: functions and losses named as torch.nn.functional names them, derivatives,
optimizers.

    from composit.nn import chain_rule, optimize
    from composit.nn.optimize import adam_optimizer

    gradients = chain_rule({loss: loss}, [weight, bias])
    weight, bias = optimize([weight, bias], gradients, optimizer)

A call makes a node of an ATen operation, or a few; nothing but `optimize` computes.
"""

from composit import _composit
from composit.nn._derivatives import chain_rule, grad, hessian_vector_product, jvp
from composit.nn.optimize import (
    Optimizer,
    adam_optimizer,
    adamw_optimizer,
    optimize,
    sgd_optimizer,
)

_FUNCTIONS = {name: function for name, function in vars(_composit.nn).items()
              if not name.startswith("_") and name not in ("Update", "adam", "adamw", "sgd")}
globals().update(_FUNCTIONS)

__all__ = sorted([*_FUNCTIONS, "Optimizer", "adam_optimizer", "adamw_optimizer", "chain_rule", "grad",
                  "hessian_vector_product", "jvp", "optimize", "sgd_optimizer"])
