"""One engine that decodes, as a process: what ./dev bench llm starts in build/peers.

    peers.py ENGINE MODEL FORMAT POSITION BATCH TOKENS THREADS FILES

Answers lines like benchmarks/mosaic/peers.py: a line when it is ready, then the seconds of calls for `time WARM CALLS`.
A call is one token of each sequence at POSITION, behind so many others, or a prompt of TOKENS.
"""

import ctypes
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).resolve().parent))

LONGEST = 2048


class Job(NamedTuple):
    model: str
    format: str
    position: int
    batch: int
    tokens: int
    threads: int
    files: Path

    def configuration(self):
        import models

        return models.CONFIGURATIONS[self.model]


def llama_cpp(job):
    """The cache is in 16-bit floats, as llama.cpp has it by default."""
    import gguf_file
    import llama_cpp as lib

    file = job.files / f"{job.model}.{job.format}.gguf"
    if not file.exists():
        gguf_file.write(job.configuration(), job.format, file)
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(str(file).encode(), lib.llama_model_default_params())
    parameters = lib.llama_context_default_params()
    parameters.n_ctx, parameters.n_seq_max = LONGEST * job.batch, job.batch
    parameters.n_batch = parameters.n_ubatch = 512
    parameters.n_threads = parameters.n_threads_batch = job.threads
    context = lib.llama_init_from_model(model, parameters)
    if not context:
        raise RuntimeError(f"llama.cpp does not load {file}")
    memory = lib.llama_get_memory(context)

    def decode(sequences, first, tokens):
        batch = lib.llama_batch_init(tokens * len(sequences), 0, 1)
        batch.n_tokens = tokens * len(sequences)
        for i in range(batch.n_tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = 7 + i % 1000, first + i % tokens, 1
            batch.seq_id[i][0] = sequences[i // tokens]
            batch.logits[i] = i % tokens == tokens - 1
        if lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        lib.llama_get_logits(context)  # waits
        lib.llama_batch_free(batch)

    for sequence in range(job.batch):
        for first in range(0, job.position, 512):
            decode([sequence], first, min(512, job.position - first))

    def run():
        for sequence in range(job.batch):
            lib.llama_memory_seq_rm(memory, sequence, job.position, -1)
        decode(list(range(job.batch)), job.position, job.tokens)

    return run


def torch_compile(job):
    import torch

    import models

    torch.set_num_threads(job.threads)
    torch._inductor.config.freezing = job.format in ("f32", "bf16")
    model = models.Step(job.configuration(), job.batch, job.position, job.tokens)
    model = model if job.format == "f32" else model.bfloat16()
    if job.format in ("int8", "int4"):
        from torchao.prototype.quantization.int4.inference_workflow import PrototypeInt4WeightOnlyConfig
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantize_(model, Int8WeightOnlyConfig() if job.format == "int8" else PrototypeInt4WeightOnlyConfig(32))
    compiled = torch.compile(model, dynamic=False)
    tokens = torch.full((job.batch, job.tokens), 7)

    @torch.no_grad()
    def run():
        return compiled(tokens)

    return run


def openvino(job):
    """Keys and values are states that grow; a call begins by those of POSITION."""
    import numpy as np
    import openvino as ov

    import models

    of = job.configuration()
    model = models.exported(of, job.format, job.batch)
    if job.format in ("int8", "int4"):
        import nncf

        settings = {"int8": {"mode": nncf.CompressWeightsMode.INT8_SYM},
                    "int4": {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": 32, "ratio": 1.0,
                             "all_layers": True}}
        model = nncf.compress_weights(model, **settings[job.format])
    precision = "f32" if job.format == "f32" else "bf16"
    settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": job.threads,
                "INFERENCE_PRECISION_HINT": precision, "KV_CACHE_PRECISION": precision}
    request = ov.Core().compile_model(model, "CPU", settings).create_infer_request()

    def call(position, tokens):
        request.infer({"tokens": np.full((job.batch, tokens), 7, np.int64),
                       "positions": np.arange(position, position + tokens)})

    # States cannot be cut, so each of a turn's calls is a token further on than the one before.
    position = 0

    def run():
        nonlocal position
        if job.tokens > 1 or position > job.position + 40:
            request.reset_state()
            position = 0
        while position < job.position:
            step = min(512, job.position - position)
            call(position, step)
            position += step
        begin = time.perf_counter()
        call(position, job.tokens)
        elapsed = time.perf_counter() - begin
        position += job.tokens
        return elapsed

    return run


ENGINES = {f.__name__: f for f in (llama_cpp, torch_compile, openvino)}


def seconds(run):
    """What a call says it took, or the clock."""
    begin = time.perf_counter()
    said = run()
    return said if isinstance(said, float) else time.perf_counter() - begin


def main():
    engine, model, format, *numbers, files = sys.argv[1:]
    ctypes.CDLL(None).prctl(1, 9)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    answer = lambda value: print(json.dumps(value), file=answers, flush=True)
    begin = time.perf_counter()
    run = ENGINES[engine](Job(model, format, *map(int, numbers), Path(files)))
    run()
    answer({"compile_seconds": time.perf_counter() - begin})
    for line in sys.stdin:
        _, warm, calls = line.split()
        answer([seconds(run) for _ in range(int(warm) + int(calls))][int(warm):])


if __name__ == "__main__":
    main()
