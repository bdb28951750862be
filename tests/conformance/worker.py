"""Checks operators, as it is told on standard input, and answers on standard output, in lines of
JSON; conformance.py starts it.

    {"name": "nn.functional.linear", "columns": ["captured", "rows"]}   ->
    {"column": "captured", "begins": true}
    {"column": "captured", "seconds": 0.1, "samples": 8, "failures": []}
    …
    {"done": true}
"""

import json
import os
import sys
import time
import warnings

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what operators print

try:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ModuleNotFoundError:
    sys.exit(77)

from cases import first_line  # noqa: E402
from columns import COLUMNS, Subject, name_of  # noqa: E402


def answer(**what):
    answers.write(json.dumps(what) + "\n")


def check(subject, column):
    answer(column=column, begins=True)
    start = time.monotonic()
    try:
        result = COLUMNS[column](subject)
    except Exception as error:
        result = {"samples": 1, "failures": [["all samples", first_line(error)]]}
    answer(column=column, seconds=round(time.monotonic() - start, 3), **result)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known = {name_of(info): info for info in op_db}
    if sys.argv[1:] == ["--list"]:
        answers.write("\n".join(known) + "\n")
        return
    for line in sys.stdin:
        wanted = json.loads(line)
        subject = Subject(known[wanted["name"]])
        for column in wanted["columns"]:
            check(subject, column)
        answer(done=True)


if __name__ == "__main__":
    main()
