"""A training step under autocast in bfloat16, beside eager, torch.compile and our own step in float32.

    ./dev bench formats --only bert_autocast_step [--threads N] [--rounds N] [--model base|small] [--batch N]

BERT-base, a sequence classifier of 128 tokens, is trained by SGD with momentum: forward, backward and update are one
step. All are in one process and take turns. With one thread a turn is timed by the thread's processor time, else by the
clock. The error is that of the losses of the first steps, against a training in float64.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

from harness import Requirements

ROOT = Path(__file__).resolve().parent.parent
MODELS = {"base": (12, 768, 12, 3072, 30522), "small": (2, 256, 4, 1024, 1000)}
TOKENS, STEPS = 128, 8
OF_FLOAT32, RATIO = 1 / 1.4, 1.0


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)))
        x = self.norm_1(x + self.output(y.transpose(1, 2).flatten(2)))
        return self.norm_2(x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, layers, width, heads, inner, words):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(TOKENS, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads, inner) for _ in range(layers)))
        self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, 2)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        x = self.layers(self.norm(self.words(ids) + self.positions.weight))
        return self.head(torch.tanh(self.pooler(x[:, 0])))


def step_of(options, autocast, dtype=torch.float32, compiled=False):
    torch.manual_seed(0)
    model = Bert(*MODELS[options.model]).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, fused=compiled)
    forward = torch.compile(model, dynamic=False) if compiled else model

    def step(ids, target):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(forward(ids).to(dtype), target)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def batches(options, count=STEPS):
    generator = torch.Generator().manual_seed(1)
    words = MODELS[options.model][-1]
    for _ in range(count):
        yield (torch.randint(0, words, (options.batch, TOKENS), generator=generator),
               torch.randint(0, 2, (options.batch,), generator=generator))


def ours(options, autocast):
    import flashlight

    step = step_of(options, autocast)
    first, second, third, fourth, *_ = batches(options)
    losses = [step(*first), step(*second)]  # momenta are there from the second step on
    captured = flashlight.trace(step, *third)
    losses += [captured._native.example_results[0], captured(*fourth)]
    return captured.compile("mosaic", threads=options.threads), losses


def engines(options):
    """By name, a step, and the losses of those that it has made."""
    yield "mosaic", lambda: ours(options, True)
    yield "mosaic_float32", lambda: ours(options, False)
    yield "torch_compile", lambda: (step_of(options, True, compiled=True), [])
    yield "libtorch", lambda: (step_of(options, True), [])


def seconds_of(step, batch, threads):
    clock = time.thread_time if threads == 1 else time.perf_counter
    begin = clock()
    step(*batch)
    return clock() - begin


def losses_of(step, made, options):
    for batch in list(batches(options))[len(made):]:
        made.append(step(*batch))
    return torch.stack([loss.double() for loss in made])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--model", choices=MODELS, default="base")
    parser.add_argument("--engines", default="mosaic,mosaic_float32,torch_compile,libtorch")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()
    sys.path.insert(0, str(options.build / "python"))
    torch.set_num_threads(options.threads)
    exact = losses_of(step_of(options, False, torch.float64), [], options)
    steps, errors, failed = {}, {}, {}
    for name, make in engines(options):
        if name not in options.engines.split(","):
            continue
        try:
            steps[name], made = make()
            errors[name] = (losses_of(steps[name], made, options) - exact).square().mean().sqrt().item()
        except Exception as error:  # a result, too
            failed[name] = str(error).splitlines()[0]
            steps.pop(name, None)
    batch = next(batches(options, 1))
    seconds = {name: [] for name in steps}
    for _ in range(options.rounds):
        for name, step in steps.items():
            seconds[name].append(seconds_of(step, batch, options.threads))
    print(f"\n{f'bert_autocast_step, {options.model}, {options.batch} x {TOKENS} tokens, {options.threads} threads':60}"
          f"{'least ms':>10}{'median ms':>11}{'error':>10}")
    for name, all in seconds.items():
        print(f"  {name:58}{1e3 * min(all):10.1f}{1e3 * statistics.median(all):11.1f}{errors[name]:10.1e}")
    for name, error in failed.items():
        print(f"  {name:58} {error}")
    requirements = Requirements()
    least = {name: min(all) for name, all in seconds.items()}
    if {"mosaic", "mosaic_float32"} <= least.keys():
        requirements.require("bert_autocast_step: bfloat16 / float32", least["mosaic"] / least["mosaic_float32"], "<=",
                             OF_FLOAT32)
    peers = {least[name]: name for name in least if not name.startswith("mosaic")}
    if peers and "mosaic" in least:
        requirements.require(f"bert_autocast_step: ours / {peers[min(peers)]}", least["mosaic"] / min(peers), "<=",
                             RATIO)
    results = ROOT / "benchmarks/results"
    results.mkdir(exist_ok=True)
    (results / "autocast.json").write_text(json.dumps(
        {"options": {key: str(value) for key, value in vars(options).items() if key != "build"}, "seconds": seconds,
         "errors": errors, "failed": failed, "requirements": requirements.lines}, indent=1))
    return requirements.exit_code()


if __name__ == "__main__":
    sys.exit(main())
