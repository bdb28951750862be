#!/usr/bin/env python3
"""Checks the lists of headers that the package installs; prints each violation.

    tools/check_headers.py HEADERS [ROOT]

HEADERS is headers.txt of a build folder: a line "public PATH TARGET" or "support PATH TARGET" for
each installed header, written by CMake (flashlight_library in cmake/targets.cmake). A public header
may include public headers, support headers, and what is not of this project. A support header that
no public header leads to is a violation, too: nobody could miss it.
"""

import re
import sys
from pathlib import Path
from typing import Iterator

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def read_headers(file: Path) -> dict[str, str]:
    """public or support, by path from the project root."""
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    return {path: kind for kind, path, _ in lines}


def own_includes(root: Path, header: str) -> list[str]:
    """Headers of the project that `header` includes; none for one that CMake generates."""
    file = root / header
    if not file.is_file():
        return []
    return [path for path in INCLUDE.findall(file.read_text(encoding="utf-8")) if (root / path).is_file()]


def violations(root: Path, headers: dict[str, str]) -> Iterator[str]:
    reached = set()
    for header in sorted(headers):
        for path in own_includes(root, header):
            if path in headers:
                reached.add(path)
            else:
                yield (
                    f"{header} is installed and includes {path}, which is not: forward-declare what it "
                    f"needs, or name {path} among PUBLIC_HEADERS or SUPPORT_HEADERS of its CMakeLists.txt"
                )
    for header, kind in sorted(headers.items()):
        if kind == "support" and header not in reached:
            yield f"{header} is a support header, and no installed header includes it: remove it from the list"


def main() -> int:
    root = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent.parent
    headers = read_headers(Path(sys.argv[1]))
    found = list(violations(root, headers))
    print(*found, sep="\n", end="\n" if found else "")
    public = sum(kind == "public" for kind in headers.values())
    print(f"headers: {public} public, {len(headers) - public} support, {len(found)} violations")
    return 1 if found or not public else 0


if __name__ == "__main__":
    sys.exit(main())
