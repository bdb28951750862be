"""Graphs as functions of JAX."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from composit import _composit

# What jaxlib writes artifacts for: old enough that a program may be read by an older one.
_STABLEHLO = "1.13.7"


def jax(graph: _composit.Graph) -> Callable[..., Any]:
    """A function of arrays of JAX, one per input of `graph`, that XLA computes.

    It gives the output of the graph, or a tuple of all outputs and of what the graph writes. It works
    inside of jax.jit and beside other functions of JAX; its gradient is the graph's derivative, which
    XLA computes as well (once: the gradient has no gradient). Where the graph asks something of
    values (a guard, an index in range) and the answer is no, floating point results are not numbers
    and others are 0. Sizes and dtypes are those of the inputs of the graph; jax_enable_x64 has to be on
    where one of them has 64 bits. Error that lists all operations that have no form in StableHLO."""
    import jax as _jax

    forward = _Program(graph, "forward")
    differentiable = [i for i, one in enumerate(forward.inputs) if one.dtype.kind == "f"]
    back = []  # made at the first derivative

    @_jax.custom_vjp
    def function(*arguments):
        return forward(arguments)

    def run(*arguments):
        return forward(arguments), arguments

    def go_back(arguments, cotangents):
        if not back:
            back.append(_Program(_composit.pullback(graph), "backward"))
        given = cotangents if isinstance(cotangents, tuple) else (cotangents,)
        floating = [one for one, kind in zip(given, forward.outputs) if kind.dtype.kind == "f"]
        gradients = back[0]((*arguments, *floating))
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        by_input = dict(zip(differentiable, gradients))
        return tuple(by_input.get(i, _no_gradient(one)) for i, one in enumerate(arguments))

    function.defvjp(run, go_back)
    return function


def _no_gradient(argument):
    import jax

    return np.zeros(np.shape(argument), jax.dtypes.float0)


class _Program:
    """A graph as an exported function of JAX, called with all of its inputs."""

    def __init__(self, graph, name):
        module = _composit.stablehlo(graph, name, False)
        self._weights, self._guards = list(module["weights"].values()), len(module["guards"])
        self.inputs = [_Kind(one) for one in graph.inputs]
        written = {one.node.attributes["name"]: one for one in graph.inputs}
        results = [one for one in graph.outputs if one is not None]
        self.outputs = [_Kind(one) for one in results + [written[n] for n in module["written"]]]
        self._exported = _exported(
            module["text"], name,
            [*self.inputs, *map(_Kind, self._weights)],
            [*self.outputs, *[_Kind(np.zeros((), bool))] * self._guards])

    def __call__(self, arguments):
        import jax.numpy as jnp

        if len(arguments) != len(self.inputs):
            raise _composit.Error(f"[jax] expected {len(self.inputs)} arrays, received "
                                  f"{len(arguments)}")
        given = [_as(argument, kind, i) for i, (argument, kind) in
                 enumerate(zip(arguments, self.inputs))]  # fmt: skip
        results = self._exported.call(*given, *self._weights)
        count = len(results) - self._guards
        if self._guards:
            holds = jnp.all(jnp.stack(results[count:]))
            results = [jnp.where(holds, one, _nothing(one.dtype)) for one in results[:count]]
        return tuple(results[:count]) if count != 1 else results[0]


class _Kind:
    """Sizes and dtype of a value of a graph, or of an array."""

    def __init__(self, value):
        self.shape, self.dtype = tuple(value.shape), np.dtype(value.dtype)


def _nothing(dtype):
    return np.array(np.nan if dtype.kind in "fc" else 0, dtype)


def _as(argument, kind, number):
    import jax.numpy as jnp

    array = jnp.asarray(argument)
    if (array.shape, array.dtype) == (kind.shape, kind.dtype):
        return array
    narrow = kind.dtype.itemsize == 8 and array.dtype != kind.dtype
    wide = " (is jax_enable_x64 on?)" if narrow else ""
    raise _composit.Error(f"[jax] expected {kind.dtype}{list(kind.shape)} as argument {number}, "
                          f"received {array.dtype}{list(array.shape)}{wide}")


def _exported(text, name, inputs, outputs):
    """The text as a jax.export.Exported, by way of a portable artifact. Neither that nor the
    constructor is in JAX's documented interface: the tests name the version that they run with."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        artifact = _jax.mlir.serialize_portable_artifact(ir.Module.parse(text), _STABLEHLO, False)
    in_avals, out_avals = (tuple(jax.core.ShapedArray(one.shape, one.dtype) for one in side)
                           for side in (inputs, outputs))  # fmt: skip
    tree = jax.tree_util.tree_structure
    none_in, none_out = (None,) * len(in_avals), (None,) * len(out_avals)
    return jax.export.Exported(
        fun_name=name, in_tree=tree((in_avals, {})), in_avals=in_avals,
        out_tree=tree(list(out_avals)), out_avals=out_avals, _has_named_shardings=True,
        _in_named_shardings=none_in, _out_named_shardings=none_out, in_shardings_hlo=none_in,
        out_shardings_hlo=none_out, nr_devices=1, platforms=("cpu",), ordered_effects=(),
        unordered_effects=(),  # the module names no platform, so each may run it
        disabled_safety_checks=(jax.export.DisabledSafetyCheck.platform(),),
        mlir_module_serialized=artifact, uses_global_constants=False, _get_vjp=None,
        calling_convention_version=jax.export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(in_avals))))
