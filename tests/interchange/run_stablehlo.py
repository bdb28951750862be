"""Runs modules of StableHLO in XLA and IREE, in an environment that has them.

    run_stablehlo.py FOLDER ENGINE...

FOLDER/NAME.mlir with FOLDER/NAME.npz, its inputs by name, and FOLDER/NAME.mlir.safetensors, its
weights, gives FOLDER/NAME.ENGINE.npz, the results by name, or FOLDER/NAME.ENGINE.error; an engine is
xla or iree."""

import json
import pathlib
import re
import struct
import sys

import numpy as np

DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1",
          "U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8", "BOOL": "?", "C64": "c8"}


def read_safetensors(file):
    """By name, as numpy has them; bfloat16 as ml_dtypes has it."""
    import ml_dtypes

    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body, arrays = json.loads(data[8:8 + length]), data[8 + length:], {}
    metadata = header.pop("__metadata__", {})
    for name, one in header.items():
        begin, end = one["data_offsets"]
        dtype = ml_dtypes.bfloat16 if one["dtype"] == "BF16" else DTYPES[one["dtype"]]
        array = np.frombuffer(body[begin:end], dtype).reshape(one["shape"])
        if named := metadata.get("composit.dtype:" + name):
            array = array.view(named).reshape(one["shape"][:-1])
        arrays[name] = array
    return arrays


def ports(text, keys):
    """Kinds and names of arguments or results, in order."""
    found = re.findall(r'\{flashlight\.(%s) = "((?:[^"\\]|\\.)*)"\}' % keys, text)
    return [(key, re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), name))
            for key, name in found]


def result_names(text):
    """As those of an ONNX model: output_0, NAME.written, guard_0."""
    names, guards = [], 0
    for key, name in ports(text, "output|written|guard"):
        names.append({"output": name, "written": name + ".written", "guard": f"guard_{guards}"}[key])
        guards += key == "guard"
    return names


def weights_of(file):
    return pathlib.Path(str(file) + ".safetensors")


def arguments_of(text, file):
    """All that `main` takes, in order."""
    inputs = np.load(file.with_suffix(".npz"))
    path = weights_of(file)
    weights = read_safetensors(path) if path.exists() else {}
    return ([inputs[name] for _, name in ports(text, "input")]
            + [weights[name] for _, name in ports(text, "weight")])


class Xla:
    def __init__(self):
        import jax
        from jax._src import xla_bridge

        jax.config.update("jax_enable_x64", True)
        self._jax, self._backend = jax, xla_bridge.get_backend("cpu")
        self._device = self._backend.local_devices()[0]

    def run(self, text, arguments, _):
        from jax._src.lib import xla_client

        devices = xla_client.DeviceList((self._device,))
        program = self._backend.compile_and_load(text, devices, xla_client.CompileOptions())
        given = [self._jax.device_put(one, self._device) for one in arguments]
        results = program.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(one[0]) for one in results]


class Iree:
    def run(self, text, arguments, weights):
        import iree.compiler.tools as tools
        import iree.runtime as runtime

        binary = tools.compile_str(
            text, input_type="stablehlo", target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false"])
        config = runtime.Config("local-task")
        context = runtime.SystemContext(config=config)
        if "#flow.parameter" in text:
            index = runtime.ParameterIndex()
            index.load(str(weights))
            provider = index.create_provider(scope="model")
            context.add_vm_module(runtime.create_io_parameters_module(context.instance, provider))
        module = runtime.VmModule.copy_buffer(context.instance, binary)
        context.add_vm_module(module)
        results = context.modules[module.name]["main"](*arguments)
        results = results if isinstance(results, (tuple, list)) else [results]
        return [np.asarray(one) for one in results]


if __name__ == "__main__":
    for engine in sys.argv[2:]:
        runner = {"xla": Xla, "iree": Iree}[engine]()
        for file in sorted(pathlib.Path(sys.argv[1]).glob("*.mlir")):
            try:
                text = file.read_text()
                results = runner.run(text, arguments_of(text, file), weights_of(file))
                named = dict(zip(result_names(text), results))
                np.savez(file.with_suffix(f".{engine}.npz"), **named)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                file.with_suffix(f".{engine}.error").write_text(" ".join(text.split())[:2000])
