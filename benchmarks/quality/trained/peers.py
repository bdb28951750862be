"""Data of a task, and what other quantizers make of its model, in the environment of peers.

    peers.py TASK PACKAGES DEBIAN FOLDER [ROOT …]     # FOLDER/TASK.npz, and FOLDER/TASK.peers.npz: outputs by method

Outputs are named `BITS|METHOD`. Data that is there is kept.
"""

import importlib
import os
import sys
import tempfile
from pathlib import Path

os.environ["NNCF_DISABLE_TELEMETRY"] = "1"
import numpy as np
import onnx
import onnx.version_converter
import onnxruntime


def plain(task, packages, data, file):
    """The model as a file of its own with known sizes; an `If` of a known number is the branch that it takes."""
    model = onnx.load(packages / task.MODEL)
    sizes, graph = task.sizes(data), model.graph
    chosen = [node for node in graph.node if node.op_type == "If"]
    if chosen and len(graph.node) < 10:
        branch = chosen[0].attribute[0].g
        del graph.node[:], graph.output[:]
        graph.node.extend(branch.node)
        graph.output.extend(branch.output)
        graph.initializer.extend(branch.initializer)
        del graph.value_info[:]
    for node in [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]:
        graph.initializer.append(node.attribute[0].t)  # quantizers look for weights there
        graph.initializer[-1].name = node.output[0]
        graph.node.remove(node)
    kept = [value for value in graph.input if value.name not in sizes]
    del graph.input[:]
    graph.input.extend(kept)
    for value in graph.input:
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            known = sizes.get(dimension.dim_param, sizes.get(f"{value.name}.{axis}"))
            if known:
                dimension.dim_value = known
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.save(onnx.shape_inference.infer_shapes(model), file)


def by_onnxruntime(file):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(file), settings)
    names = [value.name for value in session.get_inputs()]
    return lambda *arguments: session.run(None, dict(zip(names, arguments)))


def with_onnxruntime(task, file, examples, scratch):
    from onnxruntime import quantization as q
    from onnxruntime.quantization import matmul_nbits_quantizer as nbits
    from onnxruntime.quantization.onnx_model import ONNXModel
    from onnxruntime.quantization.shape_inference import quant_pre_process

    names = [value.name for value in onnx.load(file).graph.input]
    prepared, made, newer = scratch / "prepared.onnx", scratch / "made.onnx", scratch / "newer.onnx"
    model = onnx.load(file)
    if model.opset_import[0].version < 13:  # the first that has scales by channel
        model = onnx.version_converter.convert_version(model, 17)
    onnx.save(model, newer)
    quant_pre_process(str(newer), str(prepared))

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            self.left = iter(examples)

        def get_next(self):
            example = next(self.left, None)
            return example and dict(zip(names, example))

    def static(**settings):
        # Biases stay floats, and scales as they are: onnxruntime 1.31 fails to fit those of one of Magika's.
        biases = {"QuantizeBias": False, "QDQDisableWeightAdjustForInt32Bias": True}
        q.quantize_static(str(prepared), str(made), Reader(), per_channel=True, extra_options=biases, **settings)
        return by_onnxruntime(made)

    def dynamic(**settings):
        q.quantize_dynamic(str(prepared), str(made), per_channel=True, weight_type=q.QuantType.QInt8, **settings)
        return by_onnxruntime(made)

    def of_four_bits(group, symmetric):
        products = ONNXModel(onnx.load(prepared))
        products.replace_gemm_with_matmul()  # the quantizer passes over Gemm
        quantizer = nbits.MatMulNBitsQuantizer(products.model, bits=4, block_size=group, is_symmetric=symmetric)
        quantizer.process()
        quantizer.model.save_model_to_file(str(made))
        return by_onnxruntime(made)

    layers = ["Conv", "ConvTranspose", "MatMul", "Gemm"]
    for name, settings in ((", minmax", {}), (", percentile", {"calibrate_method": q.CalibrationMethod.Percentile})):
        yield f"8|onnxruntime int8 and activations calibrated{name}", lambda: static(**settings)
        yield (f"8|onnxruntime int8 and activations calibrated{name}, layers alone",
               lambda: static(op_types_to_quantize=layers, **settings))
    yield "8|onnxruntime int8 and activations dynamic", dynamic
    yield ("8|onnxruntime int8 and activations dynamic, products alone",
           lambda: dynamic(op_types_to_quantize=["MatMul", "Gemm"]))
    for group in (32, 128):
        yield f"{4 + 32 / group:g}|onnxruntime int4 sym {group}", lambda: of_four_bits(group, True)
        yield f"{4 + 36 / group:g}|onnxruntime int4 asym {group}", lambda: of_four_bits(group, False)


def with_nncf(task, file, examples, scratch):
    import nncf
    import openvino

    core = openvino.Core()
    data = nncf.Dataset([list(example) for example in examples])

    def compiled(model):
        program = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return lambda *arguments: [np.array(value) for value in program(list(arguments)).values()]

    def weights(mode, **settings):
        return compiled(nncf.compress_weights(core.read_model(file), mode=mode, **settings))

    for name, settings in (("", {}), (", accurate bias", {"fast_bias_correction": False}),
                           (", as a transformer", {"model_type": nncf.ModelType.TRANSFORMER})):
        yield (f"8|nncf int8 and activations calibrated{name}", lambda: compiled(nncf.quantize(
            core.read_model(file), data, subset_size=len(examples), **settings)))
    modes = nncf.CompressWeightsMode
    fallback = nncf.AdvancedCompressionParameters(group_size_fallback_mode=nncf.GroupSizeFallbackMode.ADJUST)
    yield "8|nncf int8 sym", lambda: weights(modes.INT8_SYM)
    yield "8|nncf int8 asym", lambda: weights(modes.INT8_ASYM)
    for mode, bits in ((modes.INT4_SYM, 16), (modes.INT4_ASYM, 20)):
        for group in task.GROUPS:
            four = {"group_size": group, "ratio": 1.0, "all_layers": True, "advanced_parameters": fallback}
            yield f"{4 + bits / group:g}|nncf {mode.value} {group}", lambda: weights(mode, **four)
            yield (f"{4 + bits / group:g}|nncf {mode.value} {group} awq",
                   lambda: weights(mode, dataset=data, awq=True, scale_estimation=True, **four))


def with_weights_of_products(task, file, examples, scratch):
    """Quantizers of a weight alone, torchao's and that of llama.cpp's files: products have the numbers of theirs."""
    from gguf import GGMLQuantizationType as Type
    from gguf import quants

    made = scratch / "numbers.onnx"

    def changed(change):
        model = onnx.load(file)
        values = {value.name: value for value in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in values:
                continue
            weight = onnx.numpy_helper.to_array(values[node.input[1]])
            by_outputs = any(one.name == "transB" and one.i for one in node.attribute)
            rows = change(weight if by_outputs else np.ascontiguousarray(weight.T))
            rows = np.ascontiguousarray(rows if by_outputs else rows.T, np.float32)
            values[node.input[1]].CopyFrom(onnx.numpy_helper.from_array(rows, node.input[1]))
        onnx.save(model, made)
        return by_onnxruntime(made)

    def blocks(kind):
        size = quants.GGML_QUANT_SIZES[kind][0]
        numbers = lambda weight: quants.dequantize(quants.quantize(weight, kind), kind)
        return lambda weight: weight if weight.shape[1] % size else numbers(weight)

    def torchao(settings, size=1):
        import torch
        from torchao import quantization as q

        def change(weight):
            if weight.shape[1] % size:
                return weight
            rows = np.pad(weight, ((0, -len(weight) % 16), (0, 0)))  # its kernels take 16 outputs at a time
            layer = torch.nn.Linear(*rows.shape[::-1], bias=False).requires_grad_(False)
            layer.weight.copy_(torch.from_numpy(rows))
            q.quantize_(layer, settings())
            return layer(torch.eye(weight.shape[1])).T.float().numpy()[:len(weight)]

        return change

    def int4(group):
        from torchao.prototype.quantization.int4 import inference_workflow

        return inference_workflow.PrototypeInt4WeightOnlyConfig(group)

    def int8():
        from torchao import quantization as q

        return q.Int8WeightOnlyConfig()

    for kind, bits in ((Type.Q8_0, 8.5), (Type.Q5_0, 5.5), (Type.Q4_1, 5), (Type.Q4_0, 4.5)):
        yield f"{bits:g}|llama.cpp {kind.name.lower()}", lambda: changed(blocks(kind))
    yield "8|torchao int8", lambda: changed(torchao(int8))
    for group in (32, 128):
        yield f"{4 + 32 / group:g}|torchao int4 {group}", lambda: changed(torchao(lambda: int4(group), group))


def main():
    name, packages, debian, folder, *roots = sys.argv[1:]
    packages, debian, folder = Path(packages), Path(debian), Path(folder)
    task = importlib.import_module(name)
    given = folder / f"{name}.npz"
    if not given.exists():
        np.savez(given, **task.prepare(packages, roots if name == "files" else debian))
    data = dict(np.load(given))
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        file = scratch / "plain.onnx"
        plain(task, packages, data, file)
        call = by_onnxruntime(file)
        examples = task.examples(call, data)
        made = {"32|float32": task.run(call, data)}
        for engine in (with_weights_of_products, with_onnxruntime, with_nncf):
            for method, make in engine(task, file, examples, scratch):
                try:
                    outputs = task.run(make(), data)
                    if np.array_equal(outputs, made["32|float32"]):
                        raise ValueError("leaves the model as it was")
                    made[method] = outputs
                    print(method, np.mean(task.score(made[method], data)), file=sys.stderr, flush=True)
                except Exception as error:  # a result, too
                    print(f"{name}, {method}: {str(error).splitlines()[0]}", file=sys.stderr)
    np.savez(folder / f"{name}.peers.npz", **made)


if __name__ == "__main__":
    main()
