"""The coverage table of conformance.py, and lists of what fails."""

import collections
import json
import re

from exceptions import BEYOND_ONNX, UNDEFINED

_MEANING = {
    "captured": "captured",
    "replayed": "replayed to the bit",
    "rows": "evaluated by our rows",
    "differentiated": "differentiated as by autograd",
    "cpp": "compiled by cpp",
    "mosaic": "compiled by mosaic",
    "pt2": "exported to .pt2",
    "onnx": "computed by onnxruntime",
    "xla": "computed by XLA",
}


def read(path):
    """The last result of each operator and column; a line that a killed run has cut short is left
    out."""
    if not path.exists():
        return []
    found = {}
    for line in path.read_text().splitlines():
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[result["op"], result["column"]] = result
    return list(found.values())


def _counts(results, column):
    """Operators that pass, and those asked: that have a sample."""
    asked = [r for r in results if r["column"] == column and r["samples"]]
    return sum(not r["failures"] for r in asked), len(asked)


def table(results, columns):
    lines = ["| | operators | pass | | samples | pass |", "|---|---|---|---|---|---|"]
    for column in columns:
        passed, asked = _counts(results, column)
        share = f"{100 * passed / asked:.1f} %" if asked else ""
        own = [r for r in results if r["column"] == column]
        samples, failed = sum(r["samples"] for r in own), sum(len(r["failures"]) for r in own)
        cells = [_MEANING[column], asked, passed, share, samples, samples - failed]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _failures(results):
    """(operator, column) -> how many samples, and the label and reason of the first."""
    found = {}
    for r in results:
        if r["failures"]:
            label, reason = r["failures"][0]
            # All of them are called from one line of cases.py.
            reason = re.sub(r"(, source | at | \(made at )cases\.py:\d+ in [\w.<>]*\)?", "", reason)
            found[r["op"], r["column"]] = len(r["failures"]), r["samples"], (label, reason)
    return found


def print_new_failures(results, known_file):
    """Those that `known_file` does not list, or lists for fewer samples; 1 if there are any."""
    known = {}
    if known_file.exists():
        lines = [line for line in known_file.read_text().splitlines() if not line.startswith("#")]
        for op, column, count, _ in (line.split(maxsplit=3) for line in lines if line):
            known[op, column] = int(count.split("/")[0])
    failures = _failures(results).items()
    new = [(key, value) for key, value in failures if value[0] > known.get(key, 0)]
    for (op, column), (count, samples, (label, reason)) in new:
        print(f"FAILED {op}, {column}: {count} of {samples} samples; {label}: {reason}"[:240])
    return int(bool(new))


def write(results, total, columns, table_file, failures_file):
    """`total`: operators of the database."""
    failures = sorted(_failures(results).items())
    lines = [
        "# What fails of torch's operator database, made by ./dev conformance: operator, column, how",
        "# many of its samples, the first of them and why.",
    ]
    for (op, column), (count, samples, (label, reason)) in failures:
        lines.append(f"{op} {column} {count}/{samples} {label.split(':')[0]}: {reason}")
    failures_file.write_text("\n".join(lines) + "\n")
    table_file.write_text(_page(results, total, columns, failures))


def _page(results, total, columns, failures):
    by_column = collections.defaultdict(list)
    for (op, column), (count, samples, (_, reason)) in failures:
        by_column[column].append(f"`{op}` ({count} of {samples}): {reason}")
    lines = [
        "# Coverage of torch's operators",
        "",
        "Made by `./dev conformance`: the operators of torch's own database (`op_db`), up to four",
        "samples per operator and dtype. An operator passes where each of its samples does. Captured",
        "and replayed in float32, float64, int64, bool, bfloat16 and complex64; the rest in float32 and",
        "float64. Replays are compared bit by bit, with sizes, strides and what is written to arguments,",
        "and on other numbers than the captured ones, for which a guard may refuse them; values and",
        "gradients by the tolerances of all tests (`tests/agreement.h`). Exported to .pt2: what",
        "`torch.export.load` gives runs to the bit. By onnxruntime: samples that it has no kernels for",
        "are not asked. By XLA: from StableHLO. Operators that draw do so behind",
        "`torch.manual_seed`, which is no part of the capture.",
        "",
        table(results, columns),
        "",
        *_within_reach(results),
        *_not_run(results, total, columns),
        "Values are not defined, and only types compared: "
        + ", ".join(f"`{name}`" for name in UNDEFINED)
        + ".",
        "",
    ]
    lines += _refused([r for r in results if r["column"] == "captured"])
    for column in columns:
        lines += [f"## Not {_MEANING[column]}", ""]
        lines += [f"- {line}" for line in by_column[column]] or ["Nothing."]
        lines.append("")
    return "\n".join(lines)


def _within_reach(results):
    """The share of what onnxruntime can compute at all."""
    passed, asked = _counts([r for r in results if r["op"] not in BEYOND_ONNX], "onnx")
    if not asked:
        return []
    reasons = collections.defaultdict(list)
    for name, why in BEYOND_ONNX.items():
        reasons[why].append(f"`{name}`")
    beyond = "; ".join(f"{why} ({', '.join(names)})" for why, names in reasons.items())
    return [f"Of the {asked} operators that onnxruntime can compute at all, {passed} pass"
            f" ({100 * passed / asked:.1f} %). The others have {beyond}.", ""]  # fmt: skip


def _not_run(results, total, columns):
    missing = {c: total - sum(r["column"] == c for r in results) for c in columns}
    texts = [f"{_MEANING[column]}: {number}" for column, number in missing.items() if number]
    return [f"Operators that were not run: {', '.join(texts)} of {total}.", ""] if texts else []


def _refused(captured):
    """What the database has, and torch on a CPU does not run."""
    without = [r for r in captured if not r["samples"]]
    others = [r for r in captured if r["samples"] and r["refused"]]
    count = sum(len(r["refused"]) for r in others)
    lines = ["## No samples", "", "Torch on a CPU refuses all samples of these operators:", ""]
    lines += [f"- `{r['op']}`: {(r['refused'] or ['none of these dtypes'])[0]}" for r in without]
    if count:
        names = ", ".join(f"`{r['op']}` ({len(r['refused'])})" for r in others)
        lines += ["", f"and {count} samples of others: {names}."]
    return [*lines, ""]
