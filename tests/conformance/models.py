#!/usr/bin/env python3
"""Captures small models of many architectures (architectures.py), replays, differentiates and
compiles the captures, and compares with torch.

    models.py                   all; writes docs/models.md
    models.py llama swin        these
    models.py --column pt2      this alone; writes no page

Each model is examined in a process of its own, so that one that crashes or hangs is a failure of that
model. Fails where one does that docs/models.md does not name.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random as pyrandom
import re
import subprocess
import sys
import time

_SEEN_ONCE = "FLASHLIGHT_SEEN_ONCE"
os.environ[_SEEN_ONCE] = "1"  # replays are judged, not looks
_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_PAGE = _ROOT / "docs/models.md"
sys.path.insert(0, str(_ROOT / "tests/frontends/python"))
COLUMNS = {
    "confirmed": "confirmed by looks",
    "replayed": "replayed to the bit",
    "checked": "checked",
    "differentiated": "differentiated",
    "cpp": "compiled by cpp",
    "mosaic": "compiled by mosaic",
    "family": "a family of sizes",
    "pt2": "exported to .pt2",
    "pt2_family": "the family exported",
    "pt2_read": "read from torch.export",
    "onnx": "in onnxruntime",
    "onnx_family": "the family in onnxruntime",
    "xla": "in XLA",
}


# Tokens that see nothing but the least float32: rounding takes the number of tokens out of the
# logarithm that torch's backward kernel begins with, and the gradients are that many times too large.
_OTHER_KERNEL = "as by torch's math kernel; its flash kernel differs from that"


# Of the largest element: as far as kernels that sum in another order may be from torch's.
_CLOSE = 1e-4

# Never known: a family is right or refused.
_WRONG = "WRONG"


# ---- one model, in the worker -------------------------------------------------------------------


class Examination:
    """Each check returns what is wrong, nothing where all is right; or throws."""

    def __init__(self, name):
        import architectures
        import torch

        import flashlight

        self._name = name
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self._original = architectures.make(name)
        self._arguments, self._keywords = self._original.inputs(1)
        with torch.no_grad():
            self._original.call(*self._arguments, **self._keywords)  # some keep tables by length
            self._captured = flashlight.trace(
                self._original.call, *self._arguments, **self._keywords)  # fmt: skip
        self._others, self._other_keywords = self._inputs_that_guards_let_pass()

    def _inputs_that_guards_let_pass(self):
        """Others than the captured ones; those where the model chooses its way by their values."""
        import flashlight

        others = self._original.inputs(2)
        try:
            self._captured(*others[0], **others[1])
            return others
        except flashlight.Error:
            return self._arguments, self._keywords

    def confirmed(self):
        """Calls that look give the program's bits, refuse nothing, and end by a capture to trust."""
        import architectures
        import flashlight
        import torch
        from agreement import same_bits

        torch.manual_seed(0)
        twin = architectures.make(self._name)  # some keep state: it sees what the captured one sees
        del os.environ[_SEEN_ONCE]
        try:
            with torch.no_grad():
                for _ in range(3):  # as the original is called until it is captured
                    twin.call(*self._arguments, **self._keywords)
                captured = flashlight.trace(
                    self._original.call, *self._arguments, **self._keywords)  # fmt: skip
                # In the end the captured ones, for models that choose their way by values.
                for seed in [2, 3, 4, 5, 6, 1, 1, 1, 1]:
                    arguments, keywords = self._original.inputs(seed)
                    expected = twin.call(*arguments, **keywords)
                    if not same_bits(captured(*arguments, **keywords), expected):
                        return f"inputs {seed}: other bits than torch's"
                    if captured.trust != "seen once":
                        break
            return "" if captured.trust != "seen once" else "not confirmed"
        finally:
            os.environ[_SEEN_ONCE] = "1"

    def replayed(self):
        import torch
        from agreement import same_bits

        with torch.no_grad():
            expected = self._original.call(*self._others, **self._other_keywords)
            received = self._captured(*self._others, **self._other_keywords)
        if type(received) is not type(expected):
            return f"expected {type(expected).__name__}, received {type(received).__name__}"
        return "" if same_bits(received, expected) else "other bits than torch's"

    def checked(self):
        report = self._captured.check(*self._others, **self._other_keywords)
        return "" if report else str(report)

    def differentiated(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        wrong = self._wrong_gradients()
        if not wrong:
            return ""
        with sdpa_kernel(SDPBackend.MATH):
            return wrong if self._wrong_gradients() else _OTHER_KERNEL

    def _wrong_gradients(self):
        import flashlight
        from agreement import loss_of

        captured = flashlight.trace(
            loss_of(self._original.call), *self._arguments, **self._keywords)  # fmt: skip
        report = captured.check_grad(*self._others, **self._other_keywords)
        return "" if report else str(report)

    def cpp(self):
        return self._compiled("cpp")

    def mosaic(self):
        return self._compiled("mosaic")

    def pt2(self):
        """torch.export.load gives a module with the same bits, called as the model is."""
        return self._wrong_export(self._captured, [(self._others, self._other_keywords)],
                                  self._original.call)

    def pt2_family(self):
        """One module for all sizes, with the bits of the family, which are the model's: a model that
        keeps state from call to call would have others after calls at other sizes."""
        family, ranges = self._family
        sizes = list(self._some_sizes(ranges, 3))
        return self._wrong_export(family, [self._original.inputs(1, **some) for some in sizes],
                                  family)

    def pt2_read(self):
        """What torch.export saves is a capture with its bits, with derivatives, for both backends."""
        from from_export import wrong_reading

        return wrong_reading(self._original, self._others, self._other_keywords)

    def onnx(self):
        """onnxruntime gives the model's numbers, and each guard holds."""
        return self._in_engine("onnx", "onnxruntime")

    def onnx_family(self):
        """One model for all sizes: onnxruntime gives the family's numbers at some of them, and each
        guard holds."""
        import engines
        import flashlight
        import torch
        from agreement import leaves

        family, ranges = self._family
        calls = [self._original.inputs(1, **some) for some in self._some_sizes(ranges, 3)]
        with torch.no_grad():
            expected = [leaves(family(*arguments, **keywords)) for arguments, keywords in calls]
            try:
                received = engines.run_family(family, calls, ["onnxruntime"])["onnxruntime"]
            except flashlight.Error as error:
                return "[onnx_family] " + re.sub(r"\[\w+\] (\S+\.onnx: )?", "", str(error), count=1)
        for ours, theirs in zip(received, expected):
            if not all(bool(v) for name, v in ours.items() if name.startswith("guard_")):
                return "a guard does not hold"
            times = engines.times_off(ours, theirs)
            if times > _CLOSE:
                return f"{times:.1e} of the largest element off"
        return ""

    def xla(self):
        """XLA does, by a module of StableHLO."""
        return self._in_engine("xla", "xla")

    def _in_engine(self, column, engine):
        import engines
        import flashlight
        import torch
        from agreement import leaves

        arguments, keywords = self._others, self._other_keywords
        with torch.no_grad():
            expected = leaves(self._original.call(*arguments, **keywords))
            try:
                received = engines.run(self._captured, arguments, keywords, [engine])[engine]
            except flashlight.Error as error:
                return f"[{column}] " + re.sub(r"\[\w+\] (\S+\.onnx: )?", "", str(error), count=1)
        if not all(bool(v) for name, v in received.items() if name.startswith("guard_")):
            return "a guard does not hold"
        times = engines.times_off(received, expected)
        return "" if times <= _CLOSE else f"{times:.1e} of the largest element off"

    def _wrong_export(self, captured, calls, program):
        import tempfile

        import flashlight
        import torch
        from agreement import leaves, same_bits

        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            file = pathlib.Path(folder) / "model.pt2"
            try:
                captured.export(file)
            except flashlight.Error as error:
                return str(error).replace(f" {file}:", "")
            module = torch.export.load(file).module()
            for arguments, keywords in calls:
                expected = leaves(program(*arguments, **keywords))
                received = leaves(module(*arguments, **keywords))
                if not same_bits(received, expected):
                    return "other bits than torch's"
        return ""

    @functools.cached_property
    def _references(self):
        """What torch gives, and what it gives in float64: nothing where its code does not run in that."""
        import torch
        from agreement import exactly, numbers

        model, call = self._original.model, self._original.call
        with torch.no_grad():
            torchs = numbers(call(*self._others, **self._other_keywords))
            try:
                return torchs, numbers(exactly(model, call, self._others, self._other_keywords))
            except RuntimeError:
                return torchs, None

    def family(self):
        """A family that chooses its examples: at its ends, and at five sizes at random, the same graph
        as the program has there, and the same bits."""
        import flashlight

        family, ranges = self._family
        for sizes in self._some_sizes(ranges, 5):
            arguments, keywords = self._original.inputs(1, **sizes)
            try:
                family(*arguments, **keywords)
            except flashlight.Error as error:
                return f"refused within its range: {error}"
            report = family.check(*arguments, **keywords)
            if not report:
                return f"{_WRONG} at {sizes}: {report}"
        return ""

    @functools.cached_property
    def _family(self):
        """A family that chooses its examples, and the ranges of its sizes."""
        import architectures
        import flashlight

        call, inputs = self._original.call, self._original.inputs
        further = architectures.sizes(self._name)
        if not all(self._runs_at(_above_least(further, steps)) for steps in (3, 5)):
            further = {}
        ranges = {"batch": (2, 5)} | further
        return flashlight.trace_family(call, lambda **sizes: inputs(1, **sizes), sizes=ranges), ranges

    def _some_sizes(self, ranges, count):
        random = pyrandom.Random(self._name)
        for _ in range(count):
            yield {name: random.randrange(low, high + 1, *step)
                   for name, (low, high, *step) in ranges.items()}  # fmt: skip

    def _runs_at(self, sizes):
        arguments, keywords = self._original.inputs(1, **sizes)
        try:
            self._original.call(*arguments, **keywords)
            return True
        except Exception:
            return False

    def _compiled(self, backend):
        import torch
        from agreement import TIMES, known, numbers, times_further

        with torch.no_grad():
            compiled = self._captured.compile(backend, flags=["-O1"])
            received = numbers(compiled(*self._others, **self._other_keywords))
        torchs, exact = self._references
        if exact is None:
            torch.testing.assert_close(received, torchs)
            return ""
        times = times_further(*known(received, torchs, exact))
        return "" if times <= TIMES else f"{times:.1f} times as far from float64 as torch"


def _above_least(ranges, steps):
    """Sizes a few steps above the least ones."""
    return {name: low + steps * (step[0] if step else 1)
            for name, (low, _, *step) in ranges.items()}  # fmt: skip


def columns_here():
    """All but those whose programs are not installed."""
    import engines

    return [column for column in COLUMNS if column not in ("onnx", "onnx_family", "xla") or engines.PYTHON]


def examine(name, columns):
    """What is wrong by column, a line of JSON for each."""

    def say(column, wrong):
        print(json.dumps({"column": column, "wrong": wrong}), flush=True)

    try:
        examination = Examination(name)
    except Exception as error:
        return say("captured", _reason(error))
    for column in columns:
        try:
            say(column, getattr(examination, column)())
        except Exception as error:
            say(column, _reason(error))


def _reason(error):
    return f"{type(error).__name__}: {error}"


# ---- all models ---------------------------------------------------------------------------------


def examine_in_worker(name, columns, timeout):
    """Column -> what is wrong."""
    start = time.monotonic()
    try:
        process = subprocess.run(
            [sys.executable, __file__, "--worker", name,
             *(word for column in columns for word in ("--column", column))], timeout=timeout, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"})  # fmt: skip
        output, end = process.stdout, f"the process ended with {process.returncode}"
    except subprocess.TimeoutExpired as late:
        output, end = (late.stdout or b"").decode(), f"took longer than {timeout} s"
    wrong = {}
    for line in output.splitlines():
        if line.startswith('{"column": '):  # models print, too
            answer = json.loads(line)
            wrong[answer["column"]] = answer["wrong"]
    if "captured" not in wrong:
        for column in columns:
            wrong.setdefault(column, end)
    failed = [column for column, why in wrong.items() if fails(why)]
    print(f"{name}: {'fails: ' + ', '.join(failed) if failed else 'passes'} "
          f"({time.monotonic() - start:.0f} s)", flush=True)  # fmt: skip
    for column in failed:
        print(f"    {column}: {wrong[column][:300]}", flush=True)
    return wrong


def fails(why):
    return bool(why) and why != _OTHER_KERNEL


def page(results, columns):
    """The table of docs/models.md, and what fails."""
    passed = {c: sum(not fails(w.get(c, c)) for w in results.values()) for c in columns}
    lines = [
        "# Models",
        "",
        "Made by `./dev models`: architectures of `transformers` and `diffusers`, unmodified, at small",
        "widths, with random weights. Confirmed: five calls with looks have torch's bits, and the capture",
        "is trusted then. Replays are compared bit by bit, on other inputs than the captured",
        "ones unless the model chooses its way by their values; gradients of a loss with autograd;",
        "compiled models with float64: at most 4 times as far from it as torch's own float32. A family",
        "has the graph and the bits of the program at five sizes at random; it varies in the batch, and in",
        "the length of texts, height and width of pictures, samples of sounds where the model takes others",
        "than those of its configuration. One that is refused names the node; `WRONG` would be a defect.",
        "Exported: `torch.export.load(file).module()` has the bits of the model on other inputs, and the",
        "family's file those of the family at three sizes. Read: what torch.export saves of the model, without",
        "writes, has its bits, autograd's gradients, and is compiled by both backends. In onnxruntime and",
        "in XLA: on other inputs,",
        "within 1e-4 of the largest element; the family's model at three sizes.",
        "",
        f"| {len(results)} architectures | " + " | ".join(COLUMNS[c] for c in columns) + " |",
        "|---|" + "---|" * len(columns),
        "| pass | " + " | ".join(str(passed[c]) for c in columns) + " |",
        "",
        "## Pass in all",
        "",
        _list(n for n, w in results.items() if not any(map(fails, w.values()))),
        "",
        "Gradients of these are those of torch's math kernel of attention. Tokens that see nothing, by",
        "a mask of the least float32, have others by its flash kernel: too large by the number of tokens.",
        "",
        _list(n for n, w in results.items() if _OTHER_KERNEL in w.values()),
        "",
        "## Fail",
        "",
    ]
    for name, wrong in results.items():
        lines += [f"- {_key(name, column)}: {_one_line(why)}"
                  for column, why in wrong.items() if fails(why)]  # fmt: skip
    return "\n".join(lines) + "\n"


def _list(names):
    return (", ".join(f"`{name}`" for name in names) or "None") + "."


def _key(name, column):
    return f"`{name}`, {COLUMNS.get(column, column)}"


def _one_line(text):
    return " ".join(text.split())[:300].replace(str(_ROOT) + "/", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of an architecture; default: all")
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--column", action="append", choices=list(COLUMNS), help="may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=900, help="seconds per model")
    parser.add_argument("--page", type=pathlib.Path, default=_PAGE, help="written after all")
    given = parser.parse_args()
    columns = given.column or columns_here()
    if given.worker:
        return examine(given.worker, columns)
    import architectures

    unknown = set(given.names) - set(architectures.NAMES)
    if unknown:
        parser.error(f"no such architecture: {', '.join(sorted(unknown))}; there are "
                     f"{', '.join(architectures.NAMES)}")  # fmt: skip
    names = given.names or architectures.NAMES
    known = _PAGE.read_text() if _PAGE.exists() else ""
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as workers:
        found = workers.map(lambda name: examine_in_worker(name, columns, given.timeout), names)
        results = dict(zip(names, found))
    if not given.names and not given.column:
        given.page.write_text(page(results, columns))
    new = [_key(name, column) for name, wrong in results.items()
           for column, why in wrong.items()
           if fails(why) and (why.startswith(_WRONG)
                              or f"- {_key(name, column)}: " not in known)]  # fmt: skip
    for key in new:
        print(f"FAILED {key}")
    sys.exit(bool(new))


if __name__ == "__main__":
    main()
