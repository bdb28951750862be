"""One engine that mosaic is compared with, as a process: what ./dev bench mosaic starts in build/peers.

    peers.py --export MODEL CAPTURE FILE.onnx          the original with the capture's weights, for the others
    peers.py --serve ENGINE MODEL CAPTURE ONNX THREADS [FORMAT]   does as benchmarks/mosaic/serve.h says

All compute in float32, or in FORMAT (bf16, int8) where they can, on tensors that stay where they are from call to call.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")


FORMAT = "f32"
SEED = 67280421310721  # flashlight::package::kDefaultSeed


def seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def example_inputs(capture):
    from safetensors.numpy import load_file

    example = load_file(capture / "example.safetensors")
    return [example[f"input.{i}"] for i in range(sum(name.startswith("input.") for name in example))]


def named(outputs):
    return {f"output.{i}": array for i, array in enumerate(outputs)}


def quantized_by_nncf(model, capture, onnx):
    """Weights and activations in int8, calibrated with the example."""
    import nncf
    import openvino as ov

    kind = nncf.ModelType.TRANSFORMER if model in ("bert_base", "clip_text") else None
    return nncf.quantize(ov.Core().read_model(onnx), nncf.Dataset([example_inputs(capture)]), subset_size=1,
                         model_type=kind)


def openvino(model, capture, onnx, threads, rest="f32"):
    """`rest`: what is computed in where the format is int8, but for products of bytes."""
    import openvino as ov

    settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
                "INFERENCE_PRECISION_HINT": rest if FORMAT == "int8" else FORMAT}
    program = quantized_by_nncf(model, capture, onnx) if FORMAT == "int8" else onnx
    request = ov.Core().compile_model(program, "CPU", settings).create_infer_request()
    for i, array in enumerate(example_inputs(capture)):
        request.set_input_tensor(i, ov.Tensor(array))
    return request.infer, lambda: named(tensor.data for tensor in request.output_tensors)


def openvino_bf16(*arguments):
    return openvino(*arguments, rest="bf16")


def quantized_by_onnxruntime(capture, onnx):
    """The same by onnxruntime's own tools: weights by channel; kept beside the model."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    import onnxruntime as ort

    class Example(CalibrationDataReader):
        def __init__(self):
            names = [described.name for described in ort.InferenceSession(onnx).get_inputs()]
            self.values = iter([dict(zip(names, example_inputs(capture)))])

        def get_next(self):
            return next(self.values, None)

    file = Path(onnx).with_name("int8.onnx")
    if not file.exists() or file.stat().st_mtime < Path(onnx).stat().st_mtime:
        quantize_static(onnx, file, Example(), per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8, use_external_data_format=True)
    return file


def onnxruntime(model, capture, onnx, threads):
    import onnxruntime as ort

    if FORMAT == "int8":
        onnx = quantized_by_onnxruntime(capture, onnx)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for described, array in zip(session.get_inputs(), example_inputs(capture)):
        binding.bind_ortvalue_input(described.name, ort.OrtValue.ortvalue_from_numpy(array))
    for described in session.get_outputs():
        binding.bind_output(described.name)
    return lambda: session.run_with_iobinding(binding), lambda: named(binding.copy_outputs_to_cpu())


def torch_compile_step(model, capture, onnx, threads):
    """Forward and backward are compiled; the update is by whichever is fastest of what torch has for it."""
    import torch

    import models

    torch.set_num_threads(threads)
    training = models.Training(model, capture)
    inputs = [torch.from_numpy(array) for array in example_inputs(capture)]
    before = {name: tensor.clone() for name, tensor in training.state().items()}
    loss_of = torch.compile(training.model, dynamic=False)

    def step(update):
        loss = loss_of(*inputs)[0]
        loss.backward()
        update()
        training.model.zero_grad()
        return loss.detach()

    def results():
        # Draws of the compiled code are its own; here they are eager's, so that losses are alike.
        torch._dynamo.reset()
        with torch.no_grad():
            for name, tensor in training.state().items():
                tensor.copy_(before[name])
        with torch._inductor.config.patch(fallback_random=True):
            torch.manual_seed(SEED)
            loss = step(training.optimizer().step)
        torch._dynamo.reset()
        tensors = {"output.0": loss, **training.state()}
        return {name: tensor.detach().numpy() for name, tensor in tensors.items()}

    updates = [training.optimizer(fused=True).step, training.optimizer(foreach=True).step,
               torch.compile(training.optimizer(foreach=True).step)]
    for update in updates * 3:
        step(update)
    fastest = min(updates, key=lambda update: min(seconds(lambda: step(update)) for _ in range(10)))
    return lambda: step(fastest), results


def torch_compile(model, capture, onnx, threads, mode=None):
    if model.endswith("_step"):
        return torch_compile_step(model, capture, onnx, threads)
    import torch
    import torch._inductor.config

    import models

    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True
    compiled = torch.compile(models.load(model, capture), mode=mode, dynamic=False)
    inputs = [torch.from_numpy(array) for array in example_inputs(capture)]

    @torch.no_grad()
    def run():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=FORMAT == "bf16"):
            return compiled(*inputs)

    return run, lambda: named(tensor.float().numpy() for tensor in run())


def torch_compile_autotuned(*arguments):
    return torch_compile(*arguments, mode="max-autotune")


ENGINES = {f.__name__: f for f in (openvino, openvino_bf16, onnxruntime, torch_compile, torch_compile_autotuned)}


def export(model, capture, onnx):
    import torch

    import models

    inputs = tuple(torch.from_numpy(array) for array in example_inputs(capture))
    onnx.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(models.load(model, capture), inputs, onnx, dynamo=True, external_data=True)


def serve(engine, model, capture, onnx, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    answer = lambda value: print(json.dumps(value), file=answers, flush=True)
    begin = time.perf_counter()
    run, results = ENGINES[engine](model, capture, onnx, threads)
    run()
    answer({"compile_seconds": time.perf_counter() - begin})
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "time":
            warm, calls = map(int, arguments)
            times = [seconds(run) for _ in range(warm + calls)]
            answer(times[warm:])
        elif command == "save":
            from safetensors.numpy import save_file

            save_file({name: array.copy() for name, array in results().items()}, arguments[0])
            answer(None)


def main():
    command, *arguments = sys.argv[1:]
    if command == "--export":
        model, capture, onnx = arguments
        export(model, Path(capture), Path(onnx))
    else:
        engine, model, capture, onnx, threads, *format = arguments
        globals()["FORMAT"] = format[0] if format else FORMAT
        serve(engine, model, Path(capture), onnx, int(threads))


if __name__ == "__main__":
    main()
