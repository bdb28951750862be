#!/usr/bin/env python3
"""A code block behind a paragraph that links to an example is what stands there between two lines `// [name]`,
apart from indentation. Examples without such lines are quoted freely."""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTE = re.compile(r"\[(examples/[^\]]+\.cpp)\]\([^)]*\)[^\n]*(?:\n[^\n]+)*\n\n```cpp\n(.*?)```", re.S)


def sections(source):
    """What stands between pairs of equal marks, by name."""
    return {name: textwrap.dedent(text) for name, text in
            re.findall(r"^ *// \[(\w+)\]\n(.*?)^ *// \[\1\]$", source, re.S | re.M)}


def problems(document, text):
    for example, quoted in QUOTE.findall(text):
        known = sections((ROOT / example).read_text())
        if known and quoted not in known.values():
            yield f"{document}: the block quoted from {example} is none of its sections {sorted(known)}"


def main():
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [line for document in documents for line in problems(document.name, document.read_text())]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
