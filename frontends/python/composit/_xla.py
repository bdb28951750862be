"""What the backend `xla` needs of JAX. The names are no part of JAX's documented interface: tests name
the version that they run with."""

from typing import Any, Callable

import numpy as np

from composit import _composit


def compile(text: str, weights: list[np.ndarray]) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """A module of StableHLO as a function of arrays, which `weights` follow. Arrays keep their 64
    bits whatever jax_enable_x64 says."""
    try:
        import jax
        from jax._src import xla_bridge
        from jax._src.lib import xla_client
    except ImportError as error:
        raise _composit.Error(f"[xla] needs the package jax: {error}") from None

    backend = xla_bridge.get_backend("cpu")
    device = backend.local_devices()[0]
    devices = xla_client.DeviceList((device,))
    program = backend.compile_and_load(text, devices, xla_client.CompileOptions())

    def on_device(array: np.ndarray) -> Any:
        with jax.enable_x64(True):
            return jax.device_put(array, device)

    kept = [on_device(weight) for weight in weights]

    def run(inputs: list[np.ndarray]) -> list[np.ndarray]:
        given = [on_device(array) for array in inputs] + kept
        results = program.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(one[0]) for one in results]

    return run
