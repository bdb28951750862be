"""Programs over streams of sizes, beside other engines on this CPU: `./dev bench sizes`.

    ./dev bench sizes [--only CASE]... [--calls N] [--threads N] [--engines A,B]

All engines get the same stream of random sizes, ten calls at a time: each takes its turn while the others are stopped.
`family` is a family by mosaic whose sizes are prepared, `adaptive` is flashlight.adaptive, `static` the program of a
size alone, warm, at every tenth call. Results are compared with eager's in the same run. A table: what an engine takes
before the first call (onnxruntime and OpenVINO start from an exported file, others from the model), in all calls, in
both; median and 99th percentile of a call; then a line per requirement.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Requirements, environment
from mosaic import Failed, Process

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/mosaic"
FILES = ROOT / "build/sizes"
RESULTS = ROOT / "benchmarks/results"
ENGINES = ("family", "adaptive", "static", "eager", "torch_compile", "onnxruntime", "openvino")
PEERS = ("torch_compile", "onnxruntime", "openvino")
CASES = ("bert_base_1", "bert_base_8", "resnet50", "sd_unet", "gpt2")
TURN = 10  # calls of an engine in a row: the first one finds caches full of another's weights
STATIC_EVERY, STATIC_AT = 10, 5
TOLERANCE = 1e-3  # of the largest element: what engines' sums differ by in deep models


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default=",".join(ENGINES), type=lambda text: text.split(","))
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    return parser.parse_args()


def onnx_of(case, python):
    file = FILES / f"{case}.onnx"
    if not file.exists():
        subprocess.run([python, HERE / "size_engines.py", "--export", case, file], check=True,
                       stdout=subprocess.DEVNULL)
    return file


class Engine:
    """One of those that take turns."""

    def __init__(self, name, case, python, onnx, options):
        self.name, self.seconds, self.error, self.failed = name, {}, 0.0, None
        self.process = Process(
            [python, HERE / "size_engines.py", name, case, onnx, options.threads, options.calls],
            PYTHONPATH=str(options.build / "python"))
        try:
            self.setup = self.process.answer()["setup"]
        except Failed as failure:
            self.fail(failure)

    def fail(self, failure):
        self.failed = str(failure)
        print(f"  {self.name}: {failure}", file=sys.stderr)

    def call(self, number, file):
        if self.failed or (self.name == "static" and number % STATIC_EVERY != STATIC_AT):
            return False
        try:
            if self.name == "static":  # which then waits for its turn like the others
                self.process.ask(f"prepare {number} {file}")
                result_in(file)
            self.seconds[number] = self.process.ask(f"{number} {file}")["seconds"]
            return True
        except (Failed, BrokenPipeError) as failure:  # as where memory is not enough for all
            self.fail(failure)
            return False

    def line(self):
        """What it takes in all, the median and the 99th percentile of a call."""
        times = sorted(self.seconds.values())
        return {"setup": self.setup, "calls": sum(times), "total": self.setup + sum(times),
                "median": statistics.median(times), "p99": times[min(len(times) - 1, int(len(times) * 0.99))],
                "error": self.error}


def result_in(file):
    import torch

    return torch.load(file)[0].double()


def measure(case, options, python):
    needs_onnx = {"onnxruntime", "openvino"} & set(options.engines)
    try:
        onnx = onnx_of(case, python) if needs_onnx else "none"
    except subprocess.CalledProcessError:
        print(f"  {case} is not exported: no onnxruntime, no openvino", file=sys.stderr)
        engines = [engine for engine in options.engines if engine not in needs_onnx]
        options = argparse.Namespace(**{**vars(options), "engines": engines})
        onnx = "none"
    engines = [Engine(name, case, python, onnx, options) for name in options.engines]
    eager = next((engine for engine in engines if engine.name == "eager"), None)
    with tempfile.TemporaryDirectory() as folder:
        for turn, begin in enumerate(range(0, options.calls, TURN)):
            numbers = range(begin, min(begin + TURN, options.calls))
            first, results = turn % len(engines), {}
            for engine in engines[first:] + engines[:first]:
                for number in numbers:
                    file = Path(folder) / engine.name
                    if engine.call(number, file):
                        results[engine, number] = result_in(file)
            for (engine, number), y in results.items():
                reference = results.get((eager, number)) if eager else None
                if reference is not None:
                    engine.error = max(engine.error, float((y - reference).abs().max() / reference.abs().max()))
    lines = {engine.name: engine.line() for engine in engines if not engine.failed and engine.seconds}
    raw = {engine.name: list(engine.seconds.items()) for engine in engines}
    for engine in engines:
        engine.process.close()
    return lines, raw


def print_table(case, lines):
    print(f"\n{case:14} {'setup s':>9} {'calls s':>9} {'total s':>9} {'median ms':>10} {'p99 ms':>9} {'error':>9}")
    for name, line in lines.items():
        print(f"  {name:12} {line['setup']:9.2f} {line['calls']:9.2f} {line['total']:9.2f} "
              f"{1e3 * line['median']:10.2f} {1e3 * line['p99']:9.2f} {line['error']:9.1e}")


def require(case, lines, raw, requirements):
    for name, line in lines.items():
        if name not in ("eager",):
            requirements.require(f"{case}: {name}, difference from eager", line["error"], "<=", TOLERANCE)
    peers = [line for name, line in lines.items() if name in PEERS]
    ours, compiled = lines.get("family"), lines.get("torch_compile")
    if ours and peers:
        for key in ("calls", "p99"):
            requirements.require(f"{case}: family ÷ the best peer, {key}",
                                 ours[key] / min(line[key] for line in peers), "<=", 1)
    if ours and compiled:  # both start from the model
        requirements.require(f"{case}: family ÷ torch.compile, total", ours["total"] / compiled["total"], "<=", 1)
    if ours and "static" in lines:
        times = dict(raw["family"])
        ratios = [times[number] / seconds for number, seconds in raw["static"] if number in times]
        requirements.require(f"{case}: family ÷ static, median", statistics.median(ratios), "<=", 1.05)
    adaptive = lines.get("adaptive")
    if adaptive and "eager" in lines:
        requirements.require(f"{case}: adaptive ÷ eager, total", adaptive["total"] / lines["eager"]["total"], "<=",
                             1.05)
    if adaptive and compiled:
        for key in ("total", "p99"):
            requirements.require(f"{case}: adaptive ÷ torch.compile, {key}", adaptive[key] / compiled[key], "<=", 1)


def main():
    options = options_of()
    python = environment(ROOT / "build/peers", HERE / "requirements-peers.txt")
    requirements, kept = Requirements(), {}
    for case in options.only or CASES:
        lines, raw = measure(case, options, python)
        print_table(case, lines)
        require(case, lines, raw, requirements)
        kept[case] = {"lines": lines, "seconds": raw}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "sizes.json").write_text(json.dumps({**kept, "requirements": requirements.lines}, indent=1))
    return requirements.exit_code()


if __name__ == "__main__":
    sys.exit(main())
