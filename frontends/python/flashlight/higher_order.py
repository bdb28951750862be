"""Higher-order operators pass by the tracer.

torch's operators that take functions (`torch.utils.checkpoint`, attention with a score function, autograd functions under
`torch.func`) have a dispatcher of their own, in Python. It refuses keys it does not know, the tracer's too; what such an
operator calls is recorded like everything else.
"""

from torch import _ops
from torch._C import _dispatch_key_parse


def let_pass() -> None:
    """Those there are, and those that are made from now on."""
    key = _dispatch_key_parse("TESTING_ONLY_GenericMode")
    _ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(key)
    for operator in _ops._higher_order_ops.values():
        operator.fallthrough(key)
