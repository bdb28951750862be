"""One engine over a stream of sizes, as a process: what ./dev bench sizes starts.

    size_engines.py --export CASE FILE.onnx
    size_engines.py ENGINE CASE ONNX THREADS CALLS      answers {"setup": seconds}, then to each line "I FILE"
                                                        {"seconds": t}: call I of the stream, its results in FILE;
                                                        "static" to "prepare I FILE" before: {}
"""

import json
import os
import random
import sys
import time
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
import torch  # noqa: E402


class Case:
    """A model, its inputs at given sizes, and the ranges that sizes are drawn from."""

    def __init__(self, sizes, step=1, **fixed):
        self.sizes, self.step, self.fixed = sizes, step, fixed

    def stream(self, calls):
        chosen = random.Random(7)
        return [{name: chosen.randrange(low, high + 1, self.step) for name, (low, high) in self.sizes.items()}
                for _ in range(calls)]


class Bert(Case):
    def model(self):
        from transformers import BertConfig, BertModel

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.bert = BertModel(BertConfig())

            def forward(self, ids, mask):
                return self.bert(ids, mask, return_dict=False)[0]

        return Model().eval()

    def inputs(self, tokens):
        generator = torch.Generator().manual_seed(tokens)
        batch = self.fixed["batch"]
        return (torch.randint(0, 30000, (batch, tokens), generator=generator),
                torch.ones(batch, tokens, dtype=torch.int64))

    names, dynamic = ("ids", "mask"), ({1: "tokens"}, {1: "tokens"})


class ResNet(Case):
    def model(self):
        from transformers import ResNetConfig, ResNetForImageClassification

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.resnet = ResNetForImageClassification(ResNetConfig(num_labels=1000))

            def forward(self, x):
                return self.resnet(x).logits

        return Model().eval()

    def inputs(self, pixels):
        generator = torch.Generator().manual_seed(pixels)
        return (torch.randn(1, 3, pixels, pixels, generator=generator),)

    names, dynamic = ("x",), ({2: "height", 3: "width"},)


class UNet(Case):
    def model(self):
        from diffusers import UNet2DConditionModel

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.unet = UNet2DConditionModel(cross_attention_dim=768)

            def forward(self, x, time, text):
                return self.unet(x, time, text, return_dict=False)[0]

        return Model().eval()

    def inputs(self, pixels):
        generator = torch.Generator().manual_seed(pixels)
        return (torch.randn(1, 4, pixels, pixels, generator=generator), torch.tensor(500),
                torch.randn(1, 77, 768, generator=generator))

    names, dynamic = ("x", "time", "text"), ({2: "height", 3: "width"}, {}, {})


class Gpt2(Case):
    """A token behind a cache of so many."""

    def model(self):
        from transformers import GPT2Config, GPT2LMHeadModel
        from transformers.cache_utils import DynamicCache

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.gpt2 = GPT2LMHeadModel(GPT2Config())

            def forward(self, ids, *cache):
                past = DynamicCache()
                for layer in range(len(cache) // 2):
                    past.update(cache[2 * layer], cache[2 * layer + 1], layer)
                result = self.gpt2(ids, past_key_values=past, use_cache=True)
                kept = [tensor for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values)]
                return (result.logits, *kept)

        return Model().eval()

    def inputs(self, past):
        generator = torch.Generator().manual_seed(past)
        cache = [torch.randn(1, 12, past, 64, generator=generator) for _ in range(24)]
        return (torch.randint(0, 50000, (1, 1), generator=generator), *cache)

    names = ("ids", *(f"cache_{i}" for i in range(24)))
    dynamic = ({}, *({2: "past"} for _ in range(24)))


CASES = {
    "bert_base_1": Bert({"tokens": (8, 512)}, batch=1),
    "bert_base_8": Bert({"tokens": (16, 128)}, batch=8),
    "resnet50": ResNet({"pixels": (160, 288)}),
    "sd_unet": UNet({"pixels": (32, 64)}, step=8),
    "gpt2": Gpt2({"past": (4, 512)}),
}


def tensors_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def eager(case, onnx):
    return case.model()


def family(case, onnx, backend="mosaic"):
    import flashlight

    family = flashlight.trace_family(case.model(), lambda **sizes: case.inputs(**sizes),
                                     sizes={name: (low, high, case.step) for name, (low, high) in case.sizes.items()})
    fast = family.compile(backend, threads=torch.get_num_threads())
    fast.prepare()
    return fast


def adaptive(case, onnx):
    import flashlight

    return flashlight.adaptive(case.model(), threads=torch.get_num_threads())


class Static:
    """The program of each size; what it takes to make it does not count. Before its call that of the size before is
    called: in a stream a call finds the memory of another size."""

    def __init__(self, case, model):
        self.case, self.model, self.program, self.sizes = case, model, None, None

    def prepare(self, sizes, file):
        import flashlight

        before, sizes_before = self.program, self.sizes
        inputs = self.case.inputs(**sizes)
        self.program, self.sizes = flashlight.trace(self.model, *inputs, flashlight.seen_once).compile(
            "mosaic", threads=torch.get_num_threads()), sizes
        for _ in range(3):
            save(self.program(*inputs), file)
        if before:
            save(before(*self.case.inputs(**sizes_before)), file)

    def __call__(self, *inputs):
        return self.program(*inputs)


def static(case, onnx):
    return Static(case, case.model())


def torch_compile(case, onnx):
    import torch._inductor.config

    torch._inductor.config.freezing = True
    return torch.compile(case.model(), dynamic=True)


def onnxruntime(case, onnx):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    session = ort.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(*inputs):
        given = dict(zip(case.names, inputs))
        return [torch.from_numpy(y) for y in session.run(None, {name: given[name].numpy() for name in names})]

    return run


def openvino(case, onnx):
    import openvino as ov

    settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": torch.get_num_threads(),
                "INFERENCE_PRECISION_HINT": "f32"}
    model = ov.Core().compile_model(onnx, "CPU", settings)
    names = [one.any_name for one in model.inputs]

    def run(*inputs):
        given = dict(zip(case.names, inputs))
        results = model([given[name].numpy() for name in names])
        return [torch.from_numpy(results[i]) for i in range(len(results))]

    return run


ENGINES = {f.__name__: f for f in (eager, family, adaptive, static, torch_compile, onnxruntime, openvino)}


def export(case, onnx):
    onnx.parent.mkdir(parents=True, exist_ok=True)
    sizes = {name: (low + high) // 2 // case.step * case.step for name, (low, high) in case.sizes.items()}
    shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in axes} for axes in case.dynamic)
    if any(name.startswith("cache_") for name in case.names):
        shapes = (shapes[0], shapes[1:])
    torch.onnx.export(case.model(), case.inputs(**sizes), onnx, dynamo=True, external_data=True,
                      input_names=list(case.names), dynamic_shapes=shapes)


def save(result, file):
    torch.save([tensor.detach().clone() for tensor in tensors_of(result)[:1]], file)


@torch.no_grad()
def serve(engine, case, onnx, threads, calls):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    answer = lambda value: print(json.dumps(value), file=answers, flush=True)
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    run = ENGINES[engine](case, onnx)
    answer({"setup": time.perf_counter() - begin})
    stream = case.stream(calls)
    for line in sys.stdin:
        *prepares, number, file = line.split()
        if prepares:
            run.prepare(stream[int(number)], file)
            answer({})
            continue
        # LibTorch's threads wait awake for milliseconds after they were busy: inputs are made without them.
        torch.set_num_threads(1)
        inputs = case.inputs(**stream[int(number)])
        torch.set_num_threads(threads)
        begin = time.perf_counter()
        result = run(*inputs)
        seconds = time.perf_counter() - begin
        torch.set_num_threads(1)
        save(result, file)
        del result  # not in the next call
        answer({"seconds": seconds})


def main():
    if sys.argv[1] == "--export":
        export(CASES[sys.argv[2]], Path(sys.argv[3]))
    else:
        engine, case, onnx, threads, calls = sys.argv[1:]
        serve(engine, CASES[case], onnx, int(threads), int(calls))


if __name__ == "__main__":
    main()
