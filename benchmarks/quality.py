"""What quantizing costs a language model that has learned something: `./dev bench quality`.

    ./dev bench quality --models      # of models that others trained: quality_models.py
    ./dev bench quality [--seeds N] [--steps N] [--sequences N] [--threads N] [--only RE] [--build build/release]

A model of 3 million weights (quality/model.py) is trained on text that Debian ships by our own captured training step,
once per seed, and kept under build/quality. Each method gives bits per weight, scales included, and the loss of files
that the model has not seen: what it adds to that of float32, in thousandths of a nat per byte, with its standard error
over sequences. For each method of a peer, the best of ours with no more bits is compared with it sequence by sequence:
the mean of the differences in standard errors is to be at most 1. Peers are nncf, torchao and llama.cpp's quantizer.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import torch

from harness import Requirements, add_packages, environment

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks/quality"
FILES = ROOT / "build/quality"
sys.path.insert(0, str(HERE))
import model as models
import text

EXAMPLES = 4  # batches that methods calibrate with
ROUNDING = 0.01  # of bits per weight
ACTIVATIONS = "activations"  # in the names of methods whose inputs are integers, too


def methods():
    """By name: bits of a weight, and options of `quantize`."""
    for group in (32, 64, 128):
        for symmetric, bits in ((True, 16), (False, 20)):
            for method in ("nearest", "gptq", "awq"):
                yield (f"int4 {'sym' if symmetric else 'asym'} {group} {method}", 4 + bits / group,
                       {"weights": "int4", "group": group, "symmetric": symmetric, "method": method})
    for method in ("nearest", "gptq", "awq"):
        yield f"int8 {method}", 8, {"weights": "int8", "method": method}
    for activations in ("by_token", "calibrated"):
        for method in ("nearest", "smooth"):
            yield (f"int8 {method} and {ACTIVATIONS} {activations}", 8,
                   {"weights": "int8", "activations": activations, "method": method})


def train(options, seed):
    file = FILES / f"seed_{seed}.{options.steps}.pt"
    if not file.exists():
        packages = options.build / "python"
        command = [sys.executable, HERE / "train.py", packages, seed, options.steps, options.threads, file]
        subprocess.run([str(part) for part in command], check=True)
    return file


def ours(options, model, data):
    import flashlight

    tokens = data["test"][:models.BATCH]
    captured = flashlight.trace(model, tokens[:, :-1], flashlight.confirm(tokens[:, 1:]))
    examples = [[batch[:, :-1]] for batch in data["examples"]]
    for name, bits, settings in methods():
        if re.search(options.only, name):
            quantized, _ = captured.quantize(examples, scales="float16", measure=False, **settings)
            yield f"ours {name}", (bits, models.per_sequence(quantized.compile("mosaic"), data["test"]))


def peers(options, weights, data, seed):
    given, made = FILES / f"data_{seed}.pt", FILES / f"peers_{seed}.{options.steps}.pt"
    torch.save(data, given)
    subprocess.run([options.peers, HERE / "peers.py", weights, given, made], check=True)
    return torch.load(made)


def data_of(options, seed):
    training, held_out = text.read(megabytes=12)
    length = models.LENGTH + 1
    examples = text.sample(training, EXAMPLES * models.BATCH, length, 77 + seed)
    test = text.sample(held_out, options.sequences, length, seed)
    return {"examples": list(examples.split(models.BATCH)), "test": test}


def added(losses, name):
    """Of all seeds, the losses that a method adds to those of float32."""
    return torch.cat([one[name][1] - one["float32"][1] for one in losses]).double()


def error_of(differences):
    return (differences.std() / len(differences) ** 0.5).item()


def report(losses, requirements):
    common = [name for name in losses[0] if all(name in one for one in losses) and name != "float32"]
    order = lambda name: (ACTIVATIONS in name, losses[0][name][0], added(losses, name).mean().item())
    names = sorted(common, key=order)
    base = torch.cat([one["float32"][1] for one in losses]).double()
    print(f"\nfloat32: {base.mean():.4f} nats per byte, of {base.numel() * models.LENGTH} held-out bytes, "
          f"{len(losses)} seeds\n{'method':48}{'bits':>6}{'adds, 1e-3':>12}{'error':>8}")
    for name in names:
        differences = added(losses, name)
        print(f"{name:48}{losses[0][name][0]:6.2f}{1e3 * differences.mean():12.3f}{1e3 * error_of(differences):8.3f}")
    print()
    for name in names:
        if name.startswith("ours"):
            continue
        bits, acts = losses[0][name][0], ACTIVATIONS in name
        rivals = [one for one in names if one.startswith("ours") and losses[0][one][0] <= bits + ROUNDING
                  and (ACTIVATIONS in one) == acts]
        if rivals:
            best = min(rivals, key=lambda one: added(losses, one).mean())
            differences = added(losses, best) - added(losses, name)
            errors = (differences.mean() / error_of(differences)).item()
            requirements.require(f"{best} / {name}, errors", errors, "<=", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4000, help="of training")
    parser.add_argument("--sequences", type=int, default=512, help="of 128 bytes, of the test")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", default="", help="a regular expression: which of our methods")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()
    sys.path.insert(0, str(options.build / "python"))
    torch.set_num_threads(options.threads)
    FILES.mkdir(parents=True, exist_ok=True)
    options.peers = environment(ROOT / "build/peers", ROOT / "benchmarks/mosaic/requirements-peers.txt")
    for name, why in add_packages(options.peers, ROOT / "benchmarks/llm/requirements-peers.txt").items():
        print(f"{name} is missing: {why}")
    requirements, losses = Requirements(), []
    for seed in range(options.seeds):
        weights, data = train(options, seed), data_of(options, seed)
        model = models.Decoder()
        model.load_state_dict(torch.load(weights))
        model.eval().requires_grad_(False)
        losses.append(peers(options, weights, data, seed) | dict(ours(options, model, data)))
    report(losses, requirements)
    return requirements.exit_code()


if __name__ == "__main__":
    if "--models" in sys.argv:
        import quality_models

        sys.exit(quality_models.main())
    sys.exit(main())
