"""The mosaic backend beside other engines on this CPU: `./dev bench mosaic`.

    ./dev bench mosaic [--only CASE]... [--threads N]... [--rounds N] [--engines A,B] [--append]
    ./dev bench mosaic --memory [--only CASE]...
    ./dev bench mosaic --kernels [--only CASE]... [--threads N]...

Peers live in an environment of their own, build/peers, which is made when it is missing or
benchmarks/mosaic/requirements-peers.txt has changed. All have the weights and inputs of one capture (in build/mosaic),
which LibTorch makes of the models in examples/zoo, and compute in float32; every result is compared with LibTorch's in
float64. The engines of a case are in memory together: for the UNet, --engines may have to name fewer at once.

Each engine is a process. In each round everyone takes a turn, while the others are stopped; before and after each turn
the machine is asked what it can do at that moment. Turns in which it could do less, was in another state than mostly,
or computed for somebody else do not count. A table of times in milliseconds, least and median of all calls that count;
then a line per requirement. Raw timings go to benchmarks/results/mosaic.json, and a picture beside it; with --append,
those of cases that were measured there before, and are not now, stay.

With --memory no peer takes part, and nothing is timed: how much memory a process has for a model that was compiled and
called, when its capture is released, beside the bytes of its weights and of the arena. With --kernels no peer takes
part either: each model's kernels beside what the machine allows (benchmarks/mosaic/kernel_table.py), in Markdown.
"""

import argparse
import ctypes
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple, Optional

from harness import Requirements, environment

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/mosaic"
FILES = ROOT / "build/mosaic"
RESULTS = ROOT / "benchmarks/results"
OURS = "mosaic"
NAME = "mosaic"  # of the files of results
DISTURBED = 0.05  # others' share of the time of one core
MOST = 4  # times as many rounds as should count
TICKS = os.sysconf("SC_CLK_TCK")
ENGINES = (OURS, "openvino", "onnxruntime", "torch_compile", "libtorch")
TRAINING = (OURS, "torch_compile", "libtorch")
CAPTURES = {}  # by engine of ours: the ending of the name of the capture that it has, if any


class Case(NamedTuple):
    """What is measured: a subject of benchmarks/mosaic/eager.cpp."""

    name: str
    model: str  # in benchmarks/mosaic/models.py
    ratio: float  # ours / the fastest peer with as many threads as cores; with one thread it is 1
    compile_seconds: Optional[float] = None  # from a loaded capture, nothing cached

    @property
    def is_step(self):
        return self.model.endswith("_step")

    def formats(self, options):
        """Of ours: what products are computed in, and what values are stored as; float32 if left out."""
        return options.format[1:]

    def engines(self, options):
        """Of those that were chosen. A training step is neither exported nor run by engines for inference."""
        return [engine for engine in options.engines if not self.is_step or engine in TRAINING]


CASES = (
    Case("resnet50", "resnet50", 0.80, 5),
    Case("resnet50_b8", "resnet50", 1),
    Case("bert_base", "bert_base", 0.85, 5),
    Case("bert_base_b8", "bert_base", 1),
    Case("clip_text", "clip_text", 0.85),
    Case("sd_unet", "sd_unet", 0.70, 20),
    Case("sd_unet_64", "sd_unet", 1),
    Case("sd_vae_decoder", "sd_vae_decoder", 0.45),
    Case("resnet18_step", "resnet18_step", 1),
    Case("bert_step", "bert_step", 1),
)


class Failed(Exception):
    pass


def die_with_parent():
    """Stopped processes would outlive a benchmark that is killed."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """Answers lines, and is stopped in between: threads that wait awake disturb nobody."""

    def __init__(self, command, **environment):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, **environment}, start_new_session=True, preexec_fn=die_with_parent)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.log.seek(0)
            last = "".join(self.log.read().strip().splitlines()[-1:])
            raise Failed(f"exit code {code}: {last}")
        self.signal(signal.SIGSTOP)
        return json.loads(line)

    def ask(self, line):
        self.signal(signal.SIGCONT)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def signal(self, which):
        os.killpg(self.process.pid, which)

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICKS  # its children's, too

    def megabytes(self):
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def close(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.log.close()


def busy_seconds():
    """What all processes of the machine have computed, and what other machines took of it."""
    user, nice, system, _idle, _wait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


class Turn(NamedTuple):
    round: int
    seconds: list  # of each call
    before: dict  # the machine: benchmarks/mosaic/machine.h
    after: dict
    others: float  # what other processes computed meanwhile: the share of the time of one core


class Watch:
    """While something runs in `process`: how long it takes, and how much others compute meanwhile."""

    def __init__(self, process):
        self.process, self.wall = process, time.perf_counter()
        self.busy, self.mine = busy_seconds(), process.cpu_seconds()

    def others(self):
        """The share of the time of one core; the system counts in ticks."""
        wall = time.perf_counter() - self.wall
        others = (busy_seconds() - self.busy) - (self.process.cpu_seconds() - self.mine)
        return max(0.0, others - 2 / TICKS) / wall


def undisturbed(turns):
    """By engine, the turns of a machine that could all it can do, and was in the state it mostly was in."""
    looks = [look for of_engine in turns.values() for turn in of_engine for look in (turn.before, turn.after)]
    fma = max((look["fma"] for look in looks), default=0)
    near = [statistics.median(look["ping_pong"] for look in looks) * factor for factor in (0.5, 2)] if looks else None
    fine = lambda look: look["fma"] > 0.94 * fma and near[0] <= look["ping_pong"] <= near[1]
    return {engine: [turn for turn in of_engine if fine(turn.before) and fine(turn.after) and turn.others < DISTURBED]
            for engine, of_engine in turns.items()}


def error_of(results, reference):
    """The largest difference from float64, in units of the largest element; the worst of all results.

    Momenta, which show the gradients, are one result: some gradients are 0 but for rounding.
    """
    import numpy as np
    from safetensors.numpy import load_file

    ours, expected = load_file(results), load_file(reference)
    expected = {name: y for name, y in expected.items() if not name.startswith("__padding__")}
    result = lambda name: "momentum" if name.endswith(".momentum") else name
    errors, largest = {}, {}
    for name, y in expected.items():
        error = np.abs(ours[name] - y).max()
        errors[result(name)] = max(errors.get(result(name), 0), error if np.isfinite(error) else np.inf)
        largest[result(name)] = max(largest.get(result(name), 0), np.abs(y).max())
    return max(float(errors[name] / largest[name]) for name in errors)


def command_of(engine, case, threads, options):
    capture = FILES / case.name
    if engine.startswith(OURS):  # mosaic, or mosaic_float32 beside other formats
        formats = [] if engine != OURS else case.formats(options)
        ours = capture.with_name(capture.name + CAPTURES.get(engine, ""))
        return [options.build / "benchmarks/bench_mosaic", "--serve", ours, threads, *formats]
    if engine == "libtorch":
        return [options.build / "benchmarks/mosaic_eager", "--serve", case.name, threads]
    return [options.peers, HERE / "peers.py", "--serve", engine, case.model, capture, onnx_of(case), threads,
            *options.format[:1]]


def onnx_of(case):
    return FILES / f"{case.name}.onnx/model.onnx"


def newer(file, than):
    return file.exists() and all(file.stat().st_mtime >= other.stat().st_mtime for other in than)


def make_capture(case, options):
    """And results in float64."""
    program, graph = options.build / "benchmarks/mosaic_eager", FILES / case.name / "graph.txt"
    FILES.mkdir(parents=True, exist_ok=True)
    if not newer(graph, [program]):
        print(f"capturing {case.name}", file=sys.stderr)
        subprocess.run([program, "--capture", case.name, FILES], check=True)
    return graph


def make_files(case, options):
    """The capture, and what onnxruntime and OpenVINO read of it."""
    graph = make_capture(case, options)
    if not case.is_step and not newer(onnx_of(case), [graph, HERE / "models.py"]):
        print(f"exporting {case.name}", file=sys.stderr)
        command = [options.peers, HERE / "peers.py", "--export", case.model, FILES / case.name, onnx_of(case)]
        done = subprocess.run(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(done.stderr)


class Contest:
    """All engines with one case and number of threads: by engine what it said of itself, its error, its turns."""

    def __init__(self, case, threads):
        self.case, self.threads = case, threads
        self.about, self.failed, self.turns = {}, {}, {}
        self.processes, self.calls = {}, {}
        self.requirements = []

    def start(self, engine, options):
        with tempfile.TemporaryDirectory() as scratch:
            process = Process(command_of(engine, self.case, self.threads, options), FLASHLIGHT_CACHE=scratch,
                              TORCHINDUCTOR_CACHE_DIR=str(FILES / "inductor"))
            self.processes[engine], watch = process, Watch(process)
            about, results = process.answer(), Path(scratch, "results.safetensors")
            about["others"] = watch.others()
            process.ask(f"save {results}")
            about["error"] = error_of(results, FILES / f"{self.case.name}.reference.safetensors")
            once = process.ask("time 1 1")[0]
            about["megabytes"] = process.megabytes()
        self.calls[engine] = {"warm": 2 if once < 0.5 else 1, "timed": min(max(round(0.4 / once), 1), 20)}
        self.about[engine], self.turns[engine] = about, []

    def run(self, options, look):
        try:
            for engine in self.case.engines(options):
                try:
                    self.start(engine, options)
                except Failed as error:  # a result, too
                    self.failed[engine] = str(error)
            engines, before = list(self.turns), look() if self.turns else None
            for number in range(MOST * options.rounds):
                if min(map(len, undisturbed(self.turns).values()), default=options.rounds) >= options.rounds:
                    break
                for engine in engines:
                    watch = Watch(self.processes[engine])
                    seconds = self.processes[engine].ask("time {warm} {timed}".format(**self.calls[engine]))
                    others, after = watch.others(), look()
                    self.turns[engine].append(Turn(number, seconds, before, after, others))
                    before = after
                engines = engines[1:] + engines[:1]
        finally:
            for process in self.processes.values():
                process.close()

    def times(self):
        """By engine with turns that count, milliseconds: least and median of their calls."""
        seconds = {engine: [1e3 * s for turn in turns for s in turn.seconds]
                   for engine, turns in undisturbed(self.turns).items()}
        return {engine: {"least": min(all), "median": statistics.median(all)} for engine, all in seconds.items() if all}

    def ratio(self, which, times):
        """Ours by the fastest peer's, and that peer; None where one of them could not be measured."""
        peers = {times[engine][which]: engine for engine in times if not engine.startswith(OURS)}
        if not peers or OURS not in times or len(times) < len(self.turns):
            return None
        return times[OURS][which] / min(peers), peers[min(peers)]

    def report(self, requirements, full):
        before = len(requirements.lines)
        self.print_table(requirements, full)
        self.requirements = requirements.lines[before:]

    def print_table(self, requirements, full):
        times, name = self.times(), f"{self.case.name}, {self.threads} thread{'s' if self.threads > 1 else ''}"
        print(f"\n{name:40}{'least':>9}{'median':>9}{'error':>10}{'MB':>8}{'set up s':>10}")
        for engine, row in times.items():
            about = self.about[engine]
            disturbed = " (disturbed)" if about["others"] > DISTURBED else ""
            print(f"  {engine:38}{row['least']:9.2f}{row['median']:9.2f}{about['error']:10.1e}"
                  f"{about['megabytes']:8.0f}{about['compile_seconds']:10.1f}{disturbed}")
        for engine, error in self.failed.items():
            print(f"  {engine:38} {error}")
        for engine, turns in self.turns.items():
            if engine not in times:
                print(f"  {engine:38} the machine was disturbed in all {len(turns)} turns")
        ours, ratio = self.about.get(OURS), self.ratio("least", times)
        if ours:
            print(f"  kernels {ours['kernels']}, arena {ours['arena_bytes'] / 1e6:.1f} MB (values that live at once: "
                  f"{ours['least_arena_bytes'] / 1e6:.1f}), prepared {ours['prepared_bytes'] / 1e6:.1f} MB")
        if ratio:
            by_median = self.ratio("median", times)
            requirements.require(f"{name}: ours / {ratio[1]}", ratio[0], "<=", self.case.ratio if full else 1)
            print(f"         by medians: {by_median[0]:.2f} of {by_median[1]}")
        if ours and full and self.case.compile_seconds:
            requirements.require(f"{name}: seconds to compile", ours["compile_seconds"], "<=",
                                 self.case.compile_seconds)
        sys.stdout.flush()

    def raw(self):
        return {"case": self.case.name, "threads": self.threads, "engines": self.about, "failed": self.failed,
                "milliseconds": self.times(), "requirements": self.requirements,
                "turns": {engine: [turn._asdict() for turn in turns] for engine, turns in self.turns.items()}}


def measure_memory(cases, options):
    """What stays of a model when its capture is released, in MB."""
    requirements = Requirements()
    print(f"{'MB':26}{'weights':>9}{'packed':>9}{'arena':>9}{'resident':>10}{'peak':>9}")
    for case in cases:
        if case.is_step:
            continue  # writes its weights, of which nothing is packed
        make_capture(case, options)
        program = options.build / "benchmarks/bench_mosaic"
        answer = subprocess.run([program, "--memory", FILES / case.name], check=True, stdout=subprocess.PIPE)
        bytes = json.loads(answer.stdout)
        keys = ("weights", "prepared", "arena", "resident", "peak")
        print(f"{case.name:26}" + "".join(f"{bytes[key] / 1e6:{10 if key == 'resident' else 9}.1f}" for key in keys))
        requirements.require(f"{case.name}: (resident - arena) / weights",
                             (bytes["resident"] - bytes["arena"]) / bytes["weights"], "<=", 1.1)
        sys.stdout.flush()
    return requirements.exit_code()


def measure_kernels(cases, options):
    sys.path.insert(0, str(HERE))
    from kernel_table import table

    for case in cases:
        make_capture(case, options)
        for threads in options.threads or [len(os.sched_getaffinity(0))]:
            program = options.build / "benchmarks/bench_mosaic"
            answer = subprocess.run([program, "--kernels", FILES / case.name, str(threads)], check=True,
                                    stdout=subprocess.PIPE)
            print(table(case.name, threads, json.loads(answer.stdout)), flush=True)
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="may be repeated")
    parser.add_argument("--threads", action="append", type=int, help="may be repeated; else one, and one per core")
    parser.add_argument("--rounds", type=int, default=5, help=f"that count; at most {MOST} times as many are run")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=None)
    parser.add_argument("--append", action="store_true", help="other cases in the results stay")
    parser.add_argument("--memory", action="store_true", help="what stays of a model when its capture is released")
    parser.add_argument("--kernels", action="store_true", help="each model's kernels beside what the machine allows")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    return parser.parse_args()


def versions(options):
    names = [line.split("==")[0] for line in (HERE / "requirements-peers.txt").read_text().splitlines() if "==" in line]
    script = ("import importlib.metadata, json, sys; "
              "print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))")
    return json.loads(subprocess.run([options.peers, "-c", script, *names], check=True, stdout=subprocess.PIPE).stdout)


def cpu_model():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def results_before(options):
    """The results that --append adds to, without contests: of this machine and these versions."""
    results = {"cpu": cpu_model(), "versions": versions(options), "contests": []}
    file = RESULTS / f"{NAME}.json"
    if not options.append or not file.exists():
        return results
    before = json.loads(file.read_text())
    for key in ("cpu", "versions"):
        if before[key] != results[key]:
            sys.exit(f"--append: {file} is of {before[key]}, this is {results[key]}")
    return before


def save(results, contests):
    sys.path.insert(0, str(HERE))
    from plot import plot

    order = {case.name: i for i, case in enumerate(CASES)}
    now = {(contest.case.name, contest.threads): contest.raw() for contest in contests}
    all = {(raw["case"], raw["threads"]): raw for raw in results["contests"]} | now
    results["contests"] = sorted(all.values(), key=lambda raw: (order.get(raw["case"], len(order)), -raw["threads"]))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{NAME}.json").write_text(json.dumps(results, indent=1) + "\n")
    plot(results, RESULTS / f"{NAME}.svg")


def main(format=()):
    options = arguments()
    options.engines = options.engines or ENGINES
    options.format = list(format)  # what others, and ours, compute in: see formats.py
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.memory:
        return measure_memory(cases, options)
    if options.kernels:
        return measure_kernels(cases, options)
    options.peers = environment(ROOT / "build/peers", HERE / "requirements-peers.txt")
    cores, results = len(os.sched_getaffinity(0)), results_before(options)
    requirements, contests = Requirements(), []
    print("milliseconds of a call; error: the largest, of float64's largest result")
    for case in cases:
        make_files(case, options)
        for threads in options.threads or sorted({cores, 1}, reverse=True):
            machine = Process([options.build / "benchmarks/bench_mosaic", "--machine", threads])
            try:
                contests.append(Contest(case, threads))
                contests[-1].run(options, lambda: machine.ask("look"))
            finally:
                machine.close()
            contests[-1].report(requirements, full=threads == cores)
            save(results, contests)  # an hour of others is not lost with one that fails
    return requirements.exit_code()


if __name__ == "__main__":
    sys.exit(main())
