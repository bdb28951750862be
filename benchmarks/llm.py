"""Decoding of language models beside other engines on this CPU: `./dev bench llm`.

    ./dev bench llm [--model NAME]... [--format NAME]... [--call NAME]... [--engines A,B] [--threads N]
                    [--rounds N] [--calls N]

Models have the sizes of TinyLlama 1.1B and Qwen2.5 0.5B (benchmarks/llm/models.py) and random weights. Calls are one
token at position 0, 512 or 2000, that of 8 sequences at 512, and a prompt of 512 tokens. Formats are those of weights:
llama.cpp's int8 is its q8_0, int4 its q4_0; OpenVINO's are those of nncf, torch.compile's those of torchao; int4 has
groups of 32. Ours is what mosaic makes of a capture of the Python step, quantized by `quantize` for int8 and int4.

Each engine is a process, which takes its turn in each round while the others are stopped. A table per call: least and
median milliseconds, tokens per second by the least, and what a call has to read (weights, scales included, and cache)
by the least time of a turn, as a share of the bandwidth that summing kernels reach with the same threads in the same
round: the median over rounds, since a virtual machine's bandwidth changes from minute to minute. For int4, the rate of
widening and multiplying in a cache is printed, too. Times that others disturb are told so. Peers live in build/peers;
those that cannot be installed, or do not run a call, are named. Files of models go to build/llm and are removed behind
their call. Raw timings go to benchmarks/results/llm.json.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from harness import Requirements, add_packages, environment
from mosaic import Failed, Process, Watch

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/llm"
FILES = ROOT / "build/llm"
RESULTS = ROOT / "benchmarks/results"
OURS, PEERS = "mosaic", ("llama_cpp", "openvino", "torch_compile")
BITS = {"f32": 32, "bf16": 16, "int8": 8, "int4": 4.5}  # of a weight of a product, where all have one scale per group
GGUF = {"f32": "f32", "bf16": "bf16", "int8": "q8_0", "int4": "q4_0"}
CALLS = {"token_0": (0, 1, 1), "token_512": (512, 1, 1), "token_2000": (2000, 1, 1), "batch_8": (512, 8, 1),
         "prompt_512": (0, 1, 512)}  # position, batch, tokens
SHARE = 0.9  # of the bandwidth
DISTURBED = 0.05  # others' share of the time of one core


def bytes_of(configuration, format, call):
    """What a call has to read at least: weights of products and vectors, and the cache of 16-bit numbers (f32: 32)."""
    position, batch, tokens = CALLS[call]
    weights, vectors = configuration.weights()
    size = 4 if format == "f32" else 2
    return weights * BITS[format] / 8 + size * (vectors + batch * configuration.cached(position + tokens - 1))


class Contest:
    """All engines with one call of one model in one format."""

    def __init__(self, model, format, call, options):
        self.model, self.format, self.call, self.options = model, format, call, options
        self.processes, self.failed, self.about = {}, {}, {}
        self.seconds, self.disturbed = {}, {}  # by engine: of each turn
        self.looks = []  # by round: limits.h

    def capture(self):
        folder = FILES / f"{self.model}.{self.format}.{self.call}"
        numbers = map(str, CALLS[self.call])
        command = [sys.executable, HERE / "capture.py", self.options.build / "python", self.model, self.format]
        done = subprocess.run([*command, *numbers, folder], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed("".join(done.stderr.strip().splitlines()[-1:]))
        return folder

    def command(self, engine):
        if engine == OURS:
            return [self.options.build / "benchmarks/bench_mosaic", "--serve", self.capture(), self.options.threads]
        format = GGUF[self.format] if engine == "llama_cpp" else self.format
        return [self.options.peers, HERE / "peers.py", engine, self.model, format, *CALLS[self.call],
                self.options.threads, FILES]

    def start(self, engine):
        process = Process(self.command(engine), TORCHINDUCTOR_CACHE_DIR=str(FILES / "inductor"))
        self.processes[engine] = process
        self.about[engine] = process.answer()
        self.about[engine]["megabytes"] = process.megabytes()
        self.seconds[engine], self.disturbed[engine] = [], 0

    def run(self, look):
        try:
            for engine in self.options.engines:
                try:
                    self.start(engine)
                except Failed as error:  # a result, too
                    self.failed[engine] = str(error)
                print(f"{engine} is ready", file=sys.stderr)
            for _ in range(self.options.rounds):
                self.looks.append(look())
                for engine in self.seconds:
                    watch = Watch(self.processes[engine])
                    self.seconds[engine].append(self.processes[engine].ask(f"time 2 {self.options.calls}"))
                    self.disturbed[engine] += watch.others() > DISTURBED
        finally:
            for process in self.processes.values():
                process.close()
            shutil.rmtree(FILES / f"{self.model}.{self.format}.{self.call}", ignore_errors=True)

    def least(self, engine):
        return min(map(min, self.seconds[engine]))

    def share(self, engine, read):
        """Of the bandwidth: the median over rounds."""
        turns = zip(self.seconds[engine], self.looks)
        return statistics.median(read / min(seconds) / 1e9 / look["read"] for seconds, look in turns)

    def report(self, configuration, requirements):
        position, batch, tokens = CALLS[self.call]
        read = bytes_of(configuration, self.format, self.call)
        name = f"{self.model}, {self.format}, {self.call}"
        print(f"\n{name:40}{'least ms':>10}{'median':>9}{'tokens/s':>10}{'share':>8}{'MB':>8}{'set up s':>10}")
        for engine, turns in self.seconds.items():
            least, about, all = self.least(engine), self.about[engine], sum(turns, [])
            share = "" if tokens > 1 else f"{self.share(engine, read):.0%}"
            count = self.disturbed[engine]
            told = f" (disturbed in {count} of {self.options.rounds} turns)" if count else ""
            print(f"  {engine:38}{1e3 * least:10.2f}{1e3 * statistics.median(all):9.2f}"
                  f"{batch * tokens / least:10.1f}{share:>8}{about['megabytes']:8.0f}"
                  f"{about['compile_seconds']:10.1f}{told}")
        for engine, error in self.failed.items():
            print(f"  {engine:38} {error}")
        rates = [look["read"] for look in self.looks]
        print(f"  reads {read / 1e6:.0f} MB; bandwidth {min(rates):.1f} to {max(rates):.1f} GB/s"
              + f"; int4 in a cache {max(look['dot4'] for look in self.looks):.1f} GB/s" * (self.format == "int4"))
        peers = [self.least(engine) for engine in self.seconds if engine != OURS]
        if OURS in self.seconds and tokens == 1:
            requirements.require(f"{name}: share of bandwidth", self.share(OURS, read), ">=", SHARE)
        if OURS in self.seconds and peers:
            requirements.require(f"{name}: ours / the fastest peer", self.least(OURS) / min(peers), "<=", 1)
        sys.stdout.flush()

    def raw(self):
        return {"model": self.model, "format": self.format, "call": self.call, "seconds": self.seconds,
                "disturbed": self.disturbed, "looks": self.looks, "failed": self.failed, "about": self.about}


def print_limits(options):
    for threads in sorted({1, options.threads}):
        limits = Process([options.build / "benchmarks/bench_llm", "--limits", threads])
        try:
            looks = [limits.ask("look") for _ in range(3)]
        finally:
            limits.close()
        best = {key: max(look[key] for look in looks) for key in looks[0]}
        print(f"{threads} threads: {best['read']:.1f} GB/s read from memory, "
              f"{best['dot4']:.1f} GB/s of int4 in a cache", flush=True)


def arguments(configurations):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=configurations, help="may be repeated")
    parser.add_argument("--format", action="append", choices=BITS, help="may be repeated; else all but f32")
    parser.add_argument("--call", action="append", choices=CALLS, help="may be repeated")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=[OURS, *PEERS])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5, help="timed, of a turn")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    return parser.parse_args()


def main():
    sys.path.insert(0, str(HERE))
    from models import CONFIGURATIONS

    options = arguments(CONFIGURATIONS)
    FILES.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    options.peers = environment(ROOT / "build/peers", ROOT / "benchmarks/mosaic/requirements-peers.txt")
    for name, why in add_packages(options.peers, HERE / "requirements-peers.txt").items():
        print(f"{name} is missing: {why}")
    print_limits(options)
    requirements, raw = Requirements(), []
    limits = Process([options.build / "benchmarks/bench_llm", "--limits", options.threads])
    for model in options.model or CONFIGURATIONS:
        for format in options.format or ("bf16", "int8", "int4"):
            for call in options.call or CALLS:
                contest = Contest(model, format, call, options)
                contest.run(lambda: limits.ask("look"))
                contest.report(CONFIGURATIONS[model], requirements)
                raw.append(contest.raw())
                results = {"threads": options.threads, "contests": raw, "requirements": requirements.lines}
                (RESULTS / "llm.json").write_text(json.dumps(results, indent=1) + "\n")
            (FILES / f"{model}.{GGUF[format]}.gguf").unlink(missing_ok=True)
    limits.close()
    return requirements.exit_code()


if __name__ == "__main__":
    sys.exit(main())
