"""What other quantizers make of the model of `./dev bench quality`, in the environment of peers.

    peers.py MODEL DATA RESULTS      weights of the trained model; {"examples", "test"}: bytes; {method: losses}

Each method gives the bits of a weight, scales included, and the loss of each sequence of the test.
"""

import copy
import ctypes
import os
import sys
import warnings
from pathlib import Path

os.environ["NNCF_DISABLE_TELEMETRY"] = "1"
warnings.filterwarnings("ignore")
import torch

import model as models

GROUPS = (32, 64, 128)


def nncf_weights(model, examples):
    """By mode and group, each with what nncf offers beside rounding."""
    import nncf

    data = nncf.Dataset([batch[:, :-1] for batch in examples])
    kinds = {"nearest": {}, "scale_estimation": {"scale_estimation": True},
             "awq": {"awq": True, "scale_estimation": True}}
    for mode, bits in ((nncf.CompressWeightsMode.INT4_SYM, 16), (nncf.CompressWeightsMode.INT4_ASYM, 20)):
        for group in GROUPS:
            for name, settings in kinds.items():
                options = {"mode": mode, "group_size": group, "ratio": 1.0, "all_layers": True, **settings}
                yield (f"nncf {mode.value} {group} {name}", 4 + bits / group,
                       lambda: nncf.compress_weights(copy.deepcopy(model), dataset=data, **options))
    yield "nncf int8_sym", 8, lambda: nncf.compress_weights(
        copy.deepcopy(model), mode=nncf.CompressWeightsMode.INT8_SYM, dataset=data)


def nncf_activations(model, examples):
    import nncf

    data = nncf.Dataset([batch[:, :-1] for batch in examples])
    yield "nncf int8 and activations", 8, lambda: nncf.quantize(
        copy.deepcopy(model), data, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(examples))


def torchao(model, examples):
    from torchao import quantization as q
    from torchao.prototype.quantization.int4 import inference_workflow as int4

    def quantized(settings):
        changed = copy.deepcopy(model)
        q.quantize_(changed, settings)
        return changed

    yield "torchao int8", 8, lambda: quantized(q.Int8WeightOnlyConfig())
    for group in GROUPS:
        yield f"torchao int4 {group}", 4 + 32 / group, lambda: quantized(int4.PrototypeInt4WeightOnlyConfig(group))
    yield ("torchao int8 and activations by token", 8,
           lambda: quantized(q.Int8DynamicActivationInt8WeightConfig()))


def llama_cpp(model, examples):
    """By llama.cpp's own quantizer; the weights are the numbers that its blocks stand for."""
    import llama_cpp as lib
    from gguf import GGMLQuantizationType as Type
    from gguf import quants

    library = ctypes.CDLL(str(next(Path(lib.__file__).parent.rglob("libggml-base.so"))))
    chunk = library.ggml_quantize_chunk
    chunk.restype = ctypes.c_size_t
    chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p]

    def quantized(kind):
        changed = copy.deepcopy(model)
        for name in model.weights():
            weight = changed.get_parameter(name).data
            block, size = quants.GGML_QUANT_SIZES[kind]
            rows, width = weight.shape
            packed = torch.empty(rows, width // block * size, dtype=torch.uint8)
            chunk(kind.value, weight.contiguous().data_ptr(), packed.data_ptr(), 0, rows, width, None)
            weight.copy_(torch.from_numpy(quants.dequantize(packed.numpy(), kind)))
        return changed

    for kind, bits in ((Type.Q8_0, 8.5), (Type.Q6_K, 6.5625), (Type.Q4_0, 4.5), (Type.Q4_K, 4.5), (Type.Q4_1, 5)):
        yield f"llama.cpp {kind.name.lower()}", bits, lambda: quantized(kind)


def main():
    weights, data, results = sys.argv[1:]
    model = models.Decoder()
    model.load_state_dict(torch.load(weights))
    model.eval().requires_grad_(False)
    given = torch.load(data)
    made = {"float32": (32, models.per_sequence(model, given["test"]))}
    for engine in (nncf_weights, nncf_activations, torchao, llama_cpp):
        try:
            for name, bits, make in engine(model, given["examples"]):
                try:
                    made[name] = (bits, models.per_sequence(make(), given["test"]))
                except Exception as error:  # a result, too
                    print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        except ImportError as error:
            print(f"{engine.__name__} is missing: {error}", file=sys.stderr)
    torch.save(made, results)


if __name__ == "__main__":
    main()
