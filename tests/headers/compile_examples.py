"""Compiles the examples in the comments of headers, as far as syntax and types go.

    compile_examples.py ROOT HEADERS torch|plain GENERATED_CPP [FOLDER...] -- COMPILER FLAGS...

HEADERS is headers.txt of a build folder: the headers that are installed. Those of each FOLDER take
part as well.

An example is an indented paragraph of a comment. It becomes the body of a function behind the
nearest preamble: of composit/ir/graph.h, the first that exists of composit/ir/graph.inc,
composit/ir.inc and composit.inc in this folder. A preamble declares the names that examples take for
granted (`x`, `graph`, `model`). Where it has a line "// EXAMPLE 2", the header's second example
stands there instead: what is no statement. In an example "..." as a statement or a body, behind a
closing parenthesis or in braces, is nothing.

`torch` compiles the headers that lead to LibTorch, and those whose preamble does, `plain` all others:
one translation unit each.
Errors have the line of the header.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

from check_headers import read_headers  # noqa: E402
from header_comments import comments_of, parts_of  # noqa: E402

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
TORCH = re.compile(r"(torch|ATen|c10|caffe2)/")
NAMESPACE = re.compile(r"^namespace ((?:composit|flashlight)[\w:]*) \{$", re.MULTILINE)
PLACE = re.compile(r"^// EXAMPLE (\d+)$", re.MULTILINE)


def leads_to_torch(root: Path, header: str, known: dict[str, bool]) -> bool:
    if header not in known:
        known[header] = False
        includes = INCLUDE.findall((root / header).read_text(encoding="utf-8"))
        own = [path for path in includes if (root / path).is_file()]
        known[header] = any(TORCH.match(path) for path in includes) or any(
            leads_to_torch(root, path, known) for path in own
        )
    return known[header]


def examples_of(text: str) -> list[tuple[int, list[str]]]:
    """First line, from 1, and lines of each example."""
    found = []
    for comment in comments_of(text):
        for part in parts_of(comment):
            if part.kind == "example":
                found.append((comment.first + part.first + 1, part.lines))
    return found


def preamble_of(header: str) -> str:
    path = Path(header)
    for folder in (path, *path.parents[:-1]):
        file = HERE / folder.with_suffix(".inc")
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return ""


def as_code(lines: list[str]) -> str:
    code = "\n".join(line[2:] for line in lines)
    return re.sub(r"(?<=\{) ?\.\.\. ?(?=\})|(?<=\)) \.\.\.", lambda m: "" if m[0] != " ..." else " {}", code)


def section(root: Path, header: str, number: int) -> str:
    """The header's examples in a namespace of their own; nothing where it has none."""
    text = (root / header).read_text(encoding="utf-8")
    examples = examples_of(text)
    if not examples:
        return ""
    codes = {
        i: f'#line {line} "{header}"\n{as_code(lines)}\n' for i, (line, lines) in enumerate(examples, start=1)
    }
    preamble = preamble_of(header)
    placed = {int(place) for place in PLACE.findall(preamble)}
    preamble = PLACE.sub(lambda place: codes[int(place[1])], preamble)
    own = NAMESPACE.search(text)
    using = f"using namespace {own[1]};\n" if own else ""
    functions = "".join(f"void example_{i}() {{\n{code}}}\n" for i, code in codes.items() if i not in placed)
    return (
        f'#line 1 "preamble of {header}"\nnamespace header_{number} {{\nusing namespace composit;\n{using}'
        f"{preamble}\n{functions}}}\n"
    )


def main() -> int:
    root, listed, group, target = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    end = sys.argv.index("--")
    folders, command = sys.argv[5:end], sys.argv[end + 1 :]
    known: dict[str, bool] = {}
    headers = {header for header in read_headers(listed) if (root / header).is_file()}
    for folder in folders:
        headers |= {file.relative_to(root).as_posix() for file in (root / folder).rglob("*.h")}
    torch = {h for h in headers if leads_to_torch(root, h, known) or "at::Tensor" in preamble_of(h)}
    chosen = sorted(torch if group == "torch" else headers - torch)
    sections = [section(root, header, i) for i, header in enumerate(chosen)]
    includes = [f'#include "{header}"\n' for header in chosen]
    if group == "torch":
        includes.append("#include <torch/torch.h>\n")
    standard = "#include <fstream>\n#include <iostream>\n"
    target.write_text(standard + "".join(includes + sections), encoding="utf-8")
    print(f"examples: of {sum(map(bool, sections))} among {len(chosen)} headers", flush=True)
    if not any(sections):
        return 1
    return subprocess.run([*command, "-fsyntax-only", "-w", target], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
