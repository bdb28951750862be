"""Models of transformers and diffusers at full size through the Python frontend: `./dev bench python`.

    ./dev bench python [--only NAME] [--rounds N] [--backends cpp,mosaic] [--gradients] [--build FOLDER]

For each model: is a replay the same bits, how far is compiled code from float64 beside torch's own float32, how long
does a capture take beside an eager run (in turns; the ratio of medians, and of the least); then the time that importing
flashlight adds to importing torch. Prints a line per requirement; raw timings go to benchmarks/results/python.json. One
model is in memory at a time; Stable Diffusion's UNet takes 7 GB, for the float64 it is compared with.

--gradients: gradients of a loss, too, beside autograd (not of the UNet, which takes more memory than that).
"""

import os
import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import Requirements

os.environ["FLASHLIGHT_SEEN_ONCE"] = "1"  # replays are judged, not looks
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples/models"), str(ROOT / "tests/frontends/python")]
IMPORTS = 9


def seconds(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def import_seconds(packages, statement):
    """Of a fresh process, from before the statement until after it."""
    path = f"import sys, time; sys.path.insert(0, {str(packages)!r}); begin = time.perf_counter(); "
    text = path + statement + "; print(time.perf_counter() - begin)"
    return float(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout)


def measure_import(packages, table, raw):
    """In turns; the first of each reads the files from disk."""
    times = {"torch": [], "torch and flashlight": []}
    for _ in range(IMPORTS):
        times["torch"].append(import_seconds(packages, "import torch"))
        times["torch and flashlight"].append(import_seconds(packages, "import torch, flashlight"))
    raw["import"] = times
    added = min(times["torch and flashlight"]) - min(times["torch"])
    table.require("5.2 import flashlight: seconds added to import torch", added, "<=", 0.2)


def measure_capture(name, original, arguments, keywords, rounds, table, raw):
    import flashlight

    times = {"eager": [], "capture": []}
    for round in range(rounds + 1):
        eager = seconds(lambda: original.call(*arguments, **keywords))[0]
        captured = None  # its memory is free before the next is made
        capture, captured = seconds(lambda: flashlight.trace(original.call, *arguments, **keywords))
        if round > 0:  # the first one warms up
            times["eager"].append(eager)
            times["capture"].append(capture)
    raw[name] = times
    least, median = (of(times["capture"]) / of(times["eager"]) for of in (min, statistics.median))
    print(f"{name}: {captured!r}, eager {min(times['eager']) * 1e3:.0f} ms, capture / eager: median {median:.2f}, "
          f"least {least:.2f}", flush=True)
    table.require(f"5.2 {name}: capture / eager, medians", median, "<=", 1.2)
    return captured


def measure(name, options, table, raw):
    import torch

    import originals
    from agreement import TIMES, exactly, leaves, same_bits, times_further

    torch.manual_seed(0)
    original = originals.ALL[name](small=False)
    (arguments, keywords), (others, other_keywords) = original.inputs(1), original.inputs(2)
    with torch.no_grad():
        exact = leaves(exactly(original.model, original.call, others, other_keywords)) if options.backends else None
        captured = measure_capture(name, original, arguments, keywords, options.rounds, table, raw)
        expected = original.call(*others, **other_keywords)
        same = same_bits(captured(*others, **other_keywords), expected)
        table.require(f"5.2 {name}: replay on other inputs has the same bits", int(same), ">=", 1)
        for backend in options.backends:
            compiling, compiled = seconds(lambda: captured.compile(backend))
            running, received = seconds(lambda: compiled(*others, **other_keywords))
            further = times_further(leaves(received), leaves(expected), exact)
            print(f"{name}: {backend} compiled in {compiling:.1f} s, first call {running:.2f} s", flush=True)
            table.require(f"5.2 {name}: {backend}'s distance from float64 / torch's", further, "<=", TIMES)
            del compiled, received
            gc.collect()
        del captured
    if options.gradients and name != "unet":
        measure_gradient(name, original, arguments, keywords, table)


def measure_gradient(name, original, arguments, keywords, table):
    import flashlight
    from agreement import leaves

    call = original.call

    def loss(*arguments, **keywords):
        results = leaves(call(*arguments, **keywords))
        return sum(t.square().mean() for t in results if t.is_floating_point())

    captured = flashlight.trace(loss, *arguments, **keywords)
    report = captured.check_grad(*arguments, **keywords)
    table.require(f"3 {name}: gradients agree with autograd", int(bool(report)), ">=", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name begins so; 'import' for importing alone")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--backends", default="cpp,mosaic", help="comma-separated; empty for none")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()
    sys.path.insert(0, str(options.build / "python"))
    options.backends = [backend for backend in options.backends.split(",") if backend]
    table, raw = Requirements(), {}
    if "import".startswith(options.only):
        measure_import(options.build / "python", table, raw)
    if options.only != "import":
        import originals

        for name in originals.ALL:
            if name.startswith(options.only):
                measure(name, options, table, raw)
                gc.collect()
    results = ROOT / "benchmarks/results"
    results.mkdir(exist_ok=True)
    (results / "python.json").write_text(json.dumps({"seconds": raw, "requirements": table.lines}, indent=1))
    return table.exit_code()


if __name__ == "__main__":
    sys.exit(main())
