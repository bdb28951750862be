#!/usr/bin/env python3
"""Passes on what ctest prints, and says before its closing lines why tests were skipped.

    ctest --preset dev | tools/say_skipped.py build/dev/Testing/Temporary/LastTest.log

A program of many tests counts with each of them.
"""

import collections
import re
import sys
from pathlib import Path

CLOSING = re.compile(r"^\d+% tests passed")
SKIPPED_BY_CTEST = re.compile(r"Test +#\d+: (\S+) .*\*\*\*Skipped")
TEST = re.compile(r"^\d+/\d+ Test: (.*)$", re.MULTILINE)
OUTPUT = re.compile(r"^Output:\n-+\n(.*?)^<end of output>$", re.MULTILINE | re.DOTALL)
SKIPPED_BY_GTEST = re.compile(r"^\S+:\d+: Skipped\n(.*?)\n*(?=^\[)", re.MULTILINE | re.DOTALL)


def reasons(log, skipped):
    """How often each reason stands in ctest's log; `skipped` names tests that CTest skipped."""
    counts = collections.Counter()
    names_and_texts = TEST.split(log)[1:]
    for name, text in zip(names_and_texts[::2], names_and_texts[1::2]):
        output = OUTPUT.search(text)
        output = output.group(1).strip() if output else ""
        found = [" ".join(reason.split()) for reason in SKIPPED_BY_GTEST.findall(output + "\n[")]
        if not found and name in skipped:
            found = [output.splitlines()[-1] if output else ""]
        counts.update(reason or f"{name} gives no reason" for reason in found)
    return counts


def main(log):
    skipped = set()
    closing = []
    for line in sys.stdin:
        if CLOSING.match(line) or closing:
            closing.append(line)
            continue
        print(line, end="", flush=True)
        if found := SKIPPED_BY_CTEST.search(line):
            skipped.add(found.group(1))
    if closing and log.exists():
        for reason, count in reasons(log.read_text(errors="replace"), skipped).most_common():
            print(f"skipped {count}: {reason}")
        print()
    print(*closing, sep="", end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
