"""The cpp backend beside the same programs by hand, in JAX and in torch: `./dev bench cpp`.

    ./dev bench cpp [--rounds N] [--only NAME] [--captures FOLDER] [--build FOLDER]

One table of times in milliseconds, the least of all rounds, in which everyone takes turns on one processor; then a line
per requirement, with what was measured. Everyone's results are compared first. Raw timings go to
benchmarks/results/cpp.json. JAX has an environment of its own, build/jax, which is made when it is missing or
requirements-jax.txt has changed. The captures of models, of `./dev demo` or of
save_models (examples/standalone), are compared with torch's own eager run.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import Requirements, environment

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/cpp"
OBJECTIVE, GRADIENT = 0, 1
WHAT = ("objective", "gradient")
# Relative; sums of a million float32 are as far apart.
TOLERANCE = 1e-5
# Those that requirement 6.2 names; of them, those whose tensors are small.
REQUIRED = ("gmm", "lstm", "bundle_adjustment", "sqrl_b")
SMALL = ("lstm", "bundle_adjustment", "sqrl")
# Those of 6.1; of them, those that LibTorch's user writes with masks.
KERNELS = ("relu3", "gelu")
MASKED = ("relu3",)


class Runner:
    """A process that runs problems when it is asked to: see serve() in benchmarks/cpp/problems.py."""

    def __init__(self, prefix, command):
        self.prefix = prefix
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def open(self, name):
        """Checksums of objective and gradient, by way."""
        return self.ask(f"open {name}")

    def seconds(self, way, which):
        return self.ask("time " + json.dumps([way, which]))


class Table(Requirements):
    def __init__(self):
        super().__init__()
        self.raw = {}

    def add(self, problem, who, which, rounds):
        self.raw.setdefault(problem, {}).setdefault(who, {})[WHAT[which]] = rounds

    def least(self, problem, who, which):
        return min(self.raw[problem][who][WHAT[which]])


def measure(problem, runners, rounds, table):
    sums, ways = {}, []
    for runner in runners:
        for way, both in runner.open(problem).items():
            if way == "difference":
                continue
            sums[runner.prefix + way] = both
            ways.append((runner, way))
    expected = sums["by hand"]
    for who, both in sums.items():
        for which in (OBJECTIVE, GRADIENT):
            apart = abs(both[which] - expected[which])
            if not apart <= TOLERANCE * abs(expected[which]):
                sys.exit(f"{problem}, {WHAT[which]}: {who} has {both[which]}, by hand {expected[which]}")
    times = {(runner.prefix + way, which): [] for runner, way in ways for which in (OBJECTIVE, GRADIENT)}
    for round in range(rounds + 1):
        for runner, way in ways:
            for which in (OBJECTIVE, GRADIENT):
                seconds = runner.seconds(way, which)
                if round > 0:  # the first one warms up
                    times[runner.prefix + way, which].append(seconds)
    for (who, which), list_of_seconds in times.items():
        table.add(problem, who, which, list_of_seconds)
    print(f"{problem:34}", "  ".join(
        f"{who} {table.least(problem, who, OBJECTIVE) * 1e3:.3f}/{table.least(problem, who, GRADIENT) * 1e3:.3f}"
        for who in sums), flush=True)


def require_kernels(table, problems):
    for problem in problems:
        if not problem.startswith(KERNELS):
            continue
        for which in (OBJECTIVE, GRADIENT):
            ours, by_hand, torch = (table.least(problem, who, which) for who in ("cpp", "by hand", "torch"))
            table.require(f"6.1 {problem}: {WHAT[which]} / by hand", ours / by_hand, "<=", 1.05)
            if problem.startswith(MASKED):
                table.require(f"6.1 {problem}: torch's masks / {WHAT[which]}", torch / ours, ">=", 5)


def require_objectives(table, problems):
    for problem in problems:
        if not problem.startswith(REQUIRED):
            continue
        least = lambda who, which: table.least(problem, who, which)
        ours = [least("cpp", which) for which in (OBJECTIVE, GRADIENT)]
        table.require(f"6.2 {problem}: gradient / objective", ours[GRADIENT] / ours[OBJECTIVE], "<=", 4)
        for which in (OBJECTIVE, GRADIENT):
            what = f"6.2 {problem}: {WHAT[which]} / "
            table.require(what + "by hand", ours[which] / least("by hand", which), "<=", 1.2)
            table.require(what + "JAX", ours[which] / least("jax", which), "<=", 1)
        if problem.startswith(SMALL):
            # The same program: one that branches, where there is one.
            who = "torch_branch" if "torch_branch" in table.raw[problem] else "torch"
            table.require(f"6.2 {problem}: {who} / gradient", least(who, GRADIENT) / ours[GRADIENT], ">=", 5)


def eager(name):
    """A function that runs the model that a capture of this name is of, in torch."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    torch.set_num_threads(1)
    if name == "bert_base":
        model, arguments = transformers.BertModel(transformers.BertConfig()), (torch.randint(0, 30522, (1, 128)),)
    elif name in ("resnet18", "resnet50"):
        small = {"depths": [2, 2, 2, 2], "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]}
        config = transformers.ResNetConfig(**(small if name == "resnet18" else {}))
        model = transformers.ResNetForImageClassification(config)
        arguments = (torch.randn(1, 3, 224, 224),)
    else:
        return None
    model.eval()
    return torch.no_grad()(lambda: model(*arguments))


def measure_models(captures, flashlight, rounds, table):
    for folder in sorted(captures.iterdir()) if captures.is_dir() else []:
        run = eager(folder.name) if (folder / "graph.txt").exists() else None
        if run is None:
            continue
        times = {"cpp": [], "torch": []}
        for round in range(rounds + 1):
            out = subprocess.run([flashlight, "run", folder], check=True, capture_output=True, text=True).stdout
            ours = float(re.search(r"one run: ([0-9.e+-]+) ms", out).group(1)) / 1e3
            run()
            begin = time.perf_counter()
            run()
            if round > 0:
                times["torch"].append(time.perf_counter() - begin)
                times["cpp"].append(ours)
        for who, list_of_seconds in times.items():
            table.add(folder.name, who, OBJECTIVE, list_of_seconds)
        print(f"{folder.name:34}", "  ".join(f"{who} {min(times[who]) * 1e3:.1f}" for who in times))
        ratio = table.least(folder.name, "cpp", OBJECTIVE) / table.least(folder.name, "torch", OBJECTIVE)
        table.require(f"6.4 {folder.name}: cpp / torch, one thread", ratio, "<=", 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="", help="problems whose name begins so")
    parser.add_argument("--captures", type=Path, default=ROOT / "demo", help="what `./dev demo` wrote")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(HERE))
    from problems import problems

    names = [problem.name for problem in problems() if problem.name.startswith(options.only)]
    runners = [
        Runner("", [options.build / "benchmarks/bench_cpp", "--serve"]),
        Runner("jax", [environment(ROOT / "build/jax", HERE / "requirements-jax.txt"), HERE / "jax_objectives.py"]),
        Runner("torch", [sys.executable, HERE / "torch_objectives.py"]),
    ]
    table = Table()
    print("milliseconds, objective/gradient")
    for name in names:
        measure(name, runners, options.rounds, table)
    require_kernels(table, names)
    require_objectives(table, names)
    measure_models(options.captures, options.build / "frontends/cli/flashlight", options.rounds, table)
    medians = {
        problem: {who: {what: statistics.median(times) for what, times in both.items()} for who, both in rows.items()}
        for problem, rows in table.raw.items()
    }
    results = ROOT / "benchmarks/results"
    results.mkdir(exist_ok=True)
    (results / "cpp.json").write_text(json.dumps({"seconds": table.raw, "medians": medians}, indent=1))
    return table.exit_code()


if __name__ == "__main__":
    sys.exit(main())
