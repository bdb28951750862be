"""Higher-order operators pass by the tracer.

torch's operators that take functions (the rules of autograd functions under `torch.func` are such) have a dispatcher of
their own, in Python. It refuses keys it does not know, the tracer's too; what such an operator calls is recorded like
everything else. The preloaded library runs this file in programs that nobody touched.
"""


def let_pass(ops, key: str) -> None:
    """`ops`: torch._ops. Those there are, and those that are made from now on."""
    from torch._C import _dispatch_key_parse

    parsed = _dispatch_key_parse(key)
    ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(parsed)
    for operator in ops._higher_order_ops.values():
        operator.fallthrough(parsed)
