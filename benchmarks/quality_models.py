"""What quantizing costs models that others trained: `./dev bench quality --models`.

    ./dev bench quality --models [--only RE] [--tasks files,speech,lines] [--threads N] [--build build/release]

The models are ONNX files that packages carry (quality/trained/requirements.txt): what a file is, whether sound has
speech, and the text of a picture. Each is imported, calibrated and quantized by our methods, and from the same file
and examples by those of onnxruntime, nncf, torchao and llama.cpp. The score is of held-out data, which
quality/trained/*.py describe: what a method adds to float32's mean, the standard error of the differences, and the part
of all decisions that are float32's. For each method of a peer, the best of ours of its kind with no more bits per
weight (of 8 bits beside 8) is compared with it item by item: the mean of the differences, in standard errors, is to be
at least -1. What the peers made is kept under build/quality_models.
"""

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from harness import Requirements, add_packages, environment

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/quality/trained"
FILES = ROOT / "build/quality_models"
TASKS = ("files", "speech", "lines")
DEBIAN = ("flite", "libflite1", "fonts-liberation2", "fonts-freefont-ttf")
ROUNDING = 0.01  # of bits per weight
ACTIVATIONS = "activations"
KINDS = ("activations calibrated", "activations", "")  # methods are compared within the first that is in their names
sys.path.insert(0, str(HERE))


def methods(groups):
    """By name: bits of a weight of a product, and options of `quantize`."""
    for method in ("nearest", "gptq", "awq"):
        yield f"int8 {method}", 8, {"weights": "int8", "method": method}
    for activations in ("by_token", "calibrated"):
        for method in ("nearest", "gptq", "smooth"):
            yield (f"int8 {method} and {ACTIVATIONS} {activations}", 8,
                   {"weights": "int8", "activations": activations, "method": method})
    for group in groups:
        for symmetric, bits in ((True, 16), (False, 20)):
            for method in ("nearest", "gptq", "awq"):
                yield (f"int4 {'sym' if symmetric else 'asym'} {group} {method}", 4 + bits / group,
                       {"weights": "int4", "group": group, "symmetric": symmetric, "method": method})


def fetch():
    """Files of the packages that carry models, and of Debian's, under FILES: nothing of them is installed."""
    packages, debian = FILES / "packages", FILES / "debian"
    python = environment(ROOT / "build/peers", ROOT / "benchmarks/mosaic/requirements-peers.txt")
    for name, why in add_packages(python, HERE / "requirements-peers.txt").items():
        print(f"{name} is missing: {why}")
    stamp, wanted = packages / "requirements.stamp", (HERE / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--target", packages, "-r", HERE / "requirements.txt"], check=True, stdout=sys.stderr)
        stamp.write_text(wanted)
    for name in DEBIAN:
        if not list(FILES.glob(f"{name}_*.deb")):
            subprocess.run(["apt-get", "download", "--quiet", name], check=True, cwd=FILES, stdout=sys.stderr)
            subprocess.run(["dpkg", "-x", *FILES.glob(f"{name}_*.deb"), debian], check=True)
    return python, packages, debian


def peers(name, python, packages, debian):
    made = FILES / f"{name}.peers.npz"
    if not made.exists():
        roots = "/usr", ROOT / ".venv", ROOT / "build/peers"
        subprocess.run([python, HERE / "peers.py", name, packages, debian, FILES, *roots], check=True)
    return dict(np.load(made))


def imported(options, task, packages, data):
    import flashlight

    folder = FILES / Path(task.MODEL).stem
    shutil.rmtree(folder, ignore_errors=True)
    sizes = [part for name, size in task.sizes(data).items() for part in ("--size", f"{name}={size}")]
    command = [options.build / "frontends/cli/flashlight", "import", packages / task.MODEL, *sizes, "-o", folder]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return flashlight.load(folder)


def call_of(program):
    import torch

    def call(*arguments):
        results = program(*(torch.from_numpy(np.array(argument)) for argument in arguments))
        results = list(results.values()) if isinstance(results, dict) else results
        return [value.numpy() for value in (results if isinstance(results, (list, tuple)) else [results])]

    return call


def quantize(captured, examples, task, settings):
    """Beside products of 4 bits, what cannot have them has 8: convolutions, and those whose inputs no group divides."""
    common = {"scales": "float16", "measure": False}
    if settings["weights"] == "int8":
        return captured.quantize(examples, **common, **settings)[0]
    small, _ = captured.quantize(examples, exclude=list(task.ODD), **common, **settings)
    return small.quantize(examples, weights="int8", **common)[0]


def ours(options, task, packages, data):
    """Outputs by `BITS|METHOD`, as those of peers."""
    import torch

    captured = imported(options, task, packages, data)
    call = call_of(captured.compile("mosaic", threads=options.threads))
    made = {"32|ours float32": task.run(call, data)}
    examples = [[torch.from_numpy(np.array(part)) for part in one] for one in task.examples(call, data)]
    for name, bits, settings in methods(task.GROUPS):
        if not re.search(options.only, name):
            continue
        quantized = quantize(captured, examples, task, settings)
        call = call_of(quantized.compile("mosaic", threads=options.threads))
        made[f"{bits:g}|ours {name}"] = task.run(call, data)
    return made


def error_of(differences):
    return differences.std(ddof=1) / len(differences) ** 0.5


def kind_of(name):
    return next(kind for kind in KINDS if kind in name)


def report(task, data, made, requirements):
    keys = {key: tuple(key.split("|")) for key in made}
    scores = {keys[key]: 100 * task.score(outputs, data) for key, outputs in made.items()}
    known = task.decisions(made["32|float32"])
    agreed = {keys[key]: 100 * np.mean(task.decisions(outputs) == known) for key, outputs in made.items()}
    exact = scores["32", "float32"]
    print(f"\n{Path(task.MODEL).stem}, {task.LAYERS}. {task.__doc__.splitlines()[0]}\n"
          f"float32: {exact.mean():.2f} % ({error_of(exact):.2f}) of {len(exact)}\n"
          f"{'method':68}{'bits':>6}{'adds, %':>9}{'error':>7}{'as float32, %':>15}")
    order = lambda key: (KINDS[::-1].index(kind_of(key[1])), -float(key[0]), -scores[key].mean())
    for bits, name in sorted(scores, key=order):
        differences = scores[bits, name] - exact
        numbers = float(bits), differences.mean(), error_of(differences), agreed[bits, name]
        print("{:68}{:6.2f}{:9.2f}{:7.2f}{:15.2f}".format(name, *numbers))
    print()
    compare(scores, requirements)


def compare(scores, requirements):
    mine = [key for key in scores if key[1].startswith("ours")]
    for bits, name in scores:
        fair = [key for key in mine if float(key[0]) <= float(bits) + ROUNDING and kind_of(key[1]) == kind_of(name)
                and (float(key[0]) >= 8) == (float(bits) >= 8)]  # 4 bits are at times better by chance
        if (bits, name) in mine or name == "float32" or not fair:
            continue
        best = max(fair, key=lambda key: scores[key].mean())
        differences = scores[best] - scores[bits, name]
        errors = differences.mean() / max(error_of(differences), 1e-9)
        requirements.require(f"{best[1]} / {name}, errors", errors, ">=", -1)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--only", default="", help="a regular expression: which of our methods")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(options.build / "python"))
    FILES.mkdir(parents=True, exist_ok=True)
    python, packages, debian = fetch()
    requirements = Requirements()
    for name in options.tasks.split(","):
        task = importlib.import_module(name)
        made = peers(name, python, packages, debian)
        data = dict(np.load(FILES / f"{name}.npz"))
        report(task, data, made | ours(options, task, packages, data), requirements)
    return requirements.exit_code()


if __name__ == "__main__":
    sys.exit(main())
