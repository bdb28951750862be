"""Runs each program twice, eager and captured, and compares bit for bit.

    python judge.py [--eager] [PATTERN...]      # a table; fails where one is wrong in silence

A verdict is `right`, `refused` (by flashlight.Error; at which call), `silent` (the first call with
other bits) or `crash`. Each program runs in a process of its own, so that none leaves anything to
the next. `--eager` compares the program with itself: whether it can be judged at all.
"""

import argparse
import collections
import dataclasses
import importlib
import os
import pathlib
import pickle
import random
import re
import struct
import sys
import traceback
import warnings

import numpy
import torch
import torch._dynamo  # Optimizers import it in their first step; once here, not in every process.

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "python")]
sys.modules.setdefault("judge", sys.modules[__name__])

from registry import CASES, Case, Registered  # noqa: E402


@dataclasses.dataclass
class Verdict:
    kind: str
    call: int = -1
    detail: str = ""


def bits(value):
    """A structure of values as one that `==` compares bit for bit."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        flat = tensor.contiguous().reshape(-1)
        data = bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
        return ("tensor", str(tensor.dtype), tuple(tensor.shape), data)
    if isinstance(value, numpy.ndarray):
        return ("array", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, float):
        return ("float", struct.pack("d", value))
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return (type(value).__name__, bits(fields))
    if isinstance(value, dict):
        return ("dict", [(key, bits(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [bits(item) for item in value])
    return (type(value).__name__, value)


def build(entry: Registered) -> Case:
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    return entry.build()


def call(case: Case, number: int, program, kept: list):
    """What one call left, and the exception that ended it. Nobody sees the result of call 0:
    that one is the trace."""
    values = case.inputs[number]
    values = values if isinstance(values, tuple) else (values,)
    if case.before:
        case.before(number)
    try:
        result = program(*values)
    except Exception as error:
        return {"exception": type(error).__name__}, error
    seen = {}
    if number > 0:
        if case.after:
            case.after(number, result)
        seen["result"] = bits(result)
        kept.append(result)
    seen["arguments"] = bits(list(values))
    if case.state:
        seen["state"] = bits(case.state())
    if case.keep:
        seen["earlier results"] = bits(kept)
    return seen, None


def difference(expected: dict, received: dict) -> str:
    for key in [*expected, *received]:
        if key not in received:
            return f"no {key}, but {received.get('exception', 'a result')}"
        if key not in expected:
            return f"{key} where the program has none"
        if expected[key] != received[key]:
            return f"another {key}"
    return ""


class Traced:
    """Traces in its first call, calls the capture in every other one."""

    def __init__(self, case: Case):
        self.runs = 0
        self.step = case.step if case.repeatable else lambda *values: self.counted(case, *values)
        self.capture = None

    def counted(self, case, *values):
        self.runs += 1
        return case.step(*values)

    def __call__(self, *values):
        if self.capture is not None:
            return self.capture(*values)
        import flashlight

        self.capture = flashlight.trace(self.step, *values)
        return None


def judge(entry: Registered, eager: bool) -> Verdict:
    case, kept = build(entry), []
    calls = range(len(case.inputs))
    reference = [call(case, number, case.step, kept) for number in calls]
    del case, kept

    case, kept = build(entry), []
    program = case.step if eager else Traced(case)
    for number in calls:
        runs = 0 if eager else program.runs
        seen, error = call(case, number, program, kept)
        if error is not None and type(error).__name__ != type(reference[number][1]).__name__:
            if not eager:
                import flashlight

                if isinstance(error, flashlight.Error):
                    return Verdict("refused", number, str(error))
            return Verdict("crash", number, "".join(traceback.format_exception(error)))
        if not case.repeatable:
            if not eager and program.runs == runs:
                return Verdict("silent", number, "the program did not run")
        elif wrong := difference(reference[number][0], seen):
            return Verdict("silent", number, wrong)
    return Verdict("right")


def in_process_of_its_own(entry: Registered, eager: bool) -> Verdict:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        nowhere = os.open(os.devnull, os.O_WRONLY)  # Some programs print, and torch warns.
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        warnings.simplefilter("ignore")
        try:
            verdict = judge(entry, eager)
        except BaseException:
            verdict = Verdict("crash", -1, traceback.format_exc())
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(verdict, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(text) if text else Verdict("crash", -1, f"ended with status {status}")


def complaint(entry: Registered, verdict: Verdict) -> str:
    """What is wrong with a verdict; empty if it is as expected."""
    if entry.expect in ("cannot see", "copies") and verdict.kind != "crash":
        return ""
    if verdict.kind in ("silent", "crash"):
        return verdict.kind.upper()
    if entry.expect == "refused" and verdict.kind == "right":
        return ""  # Its looks ran the program each time, or it goes on by itself.
    if entry.expect not in (verdict.kind, "either"):
        return f"expected {entry.expect}"
    if verdict.kind == "refused" and not re.search(entry.error, verdict.detail, re.I | re.S):
        return f"expected a message with /{entry.error}/"
    return ""


def chosen(patterns: list[str]) -> list[Registered]:
    for file in sorted((FOLDER / "python").glob("*.py")):
        importlib.import_module(file.stem)
    return [entry for entry in CASES.values()
            if not patterns or any(re.search(pattern, entry.name) for pattern in patterns)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("patterns", nargs="*", help="regular expressions on names; all without")
    parser.add_argument("--eager", action="store_true", help="compare each program with itself")
    parser.add_argument("--long", action="store_true", help="print whole messages")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.eager:
        import flashlight  # noqa: F401  Once here, not in every process.
    entries, failures, counts = chosen(options.patterns), [], collections.Counter()
    for entry in entries:
        verdict = in_process_of_its_own(entry, options.eager)
        if options.eager:
            wrong = "" if verdict.kind == "right" else verdict.kind.upper()
        else:
            wrong = complaint(entry, verdict)
        unseen = f" ({entry.expect})" if entry.expect in ("cannot see", "copies") else ""
        counts[verdict.kind + unseen] += 1
        at = f" at {verdict.call}" if verdict.call >= 0 else ""
        detail = verdict.detail if options.long else verdict.detail.strip()[:200]
        if verdict.kind == "crash" and not options.long:
            detail = verdict.detail.strip().split("\n")[-1][:200]
        print(f"{entry.name:48} {verdict.kind + at:14} {wrong:12} {unseen} {detail}", flush=True)
        if wrong:
            failures.append(entry.name)
    if not entries:
        print("no program has such a name")
        return 1
    totals = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
    print(f"\n{len(entries)} programs: {totals}")
    if failures:
        print(f"{len(failures)} not as they should be:", *failures, sep="\n  ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
