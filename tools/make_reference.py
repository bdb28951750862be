#!/usr/bin/env python3
"""Writes the reference of the public C++ API, as HTML; `./dev docs` runs it.

    tools/make_reference.py HEADERS FOLDER      # HEADERS: headers.txt of a build folder

docs/reference.md is the start page: it lists the public headers by topic. Each name that a public
header declares needs a comment. What Doxygen warns of is an error, and is printed with the line of
the header; so is a header that the start page does not list, or lists and is none. Exit code 77:
there is no doxygen.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from check_headers import read_headers
from doxygen_comments import Line, doxygen_lines, macros_of

ROOT = Path(__file__).resolve().parent.parent
START = ROOT / "docs/reference.md"
SETTINGS = ROOT / "docs/Doxyfile"
ROW = re.compile(r"^\| `([\w/]+\.\w+)` \|", re.MULTILINE)
NAMESPACE_ROW = re.compile(r"^\| `([\w:]+)` \| (.*) \|$", re.MULTILINE)
WARNING = re.compile(r"^(?P<file>/\S+?):(?P<line>\d+): (?P<what>.*)$")


def slug(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower())


def topics(start: str) -> dict[str, str]:
    """The topic of each header that the start page lists."""
    sections = re.split(r"^## (.*)$", start, flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2])
    return {header: slug(title) for title, text in pairs for header in ROW.findall(text)}


def start_page(start: str) -> str:
    """The start page as Doxygen's main page, and a group per topic that lists headers."""
    opening, *sections = re.split(r"^## (.*)$", start, flags=re.MULTILINE)
    page = re.sub(r"^# (.*)$", r"@mainpage \1", opening, flags=re.MULTILINE)
    rest = ""
    for title, text in zip(sections[::2], sections[1::2]):
        linked = ROW.sub(r'| @ref \1 "\1" |', text)
        if linked != text:
            page += f'\n## {title}\n@ref {slug(title)} "All names of this topic"\n{linked}'
            rest += f"/** @defgroup {slug(title)} {title}\n{linked}\n*/\n"
        else:
            page += f"\n## {title}\n" + NAMESPACE_ROW.sub(r"| @ref \1 | \2 |", text)
            for name, what in NAMESPACE_ROW.findall(text):
                rest += f"/** @namespace {name}\n{what} */\n"
    return f"/**\n{page}*/\n{rest}"


def find(header: str, generated: Path) -> Path:
    return ROOT / header if (ROOT / header).is_file() else generated / header


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def write_input(headers: list[str], generated: Path, folder: Path) -> dict[str, list[Line]]:
    """The headers as Doxygen reads them; per file written, where its lines come from."""
    start = START.read_text(encoding="utf-8")
    topic = topics(start)
    texts = {header: find(header, generated).read_text(encoding="utf-8") for header in headers}
    macros = {name: macro for text in texts.values() for name, macro in macros_of(text).items()}
    written = {}
    for header, text in texts.items():
        lines = doxygen_lines(header, text, topic.get(header, ""), macros)
        written[str(folder / "headers" / header)] = lines
        write(folder / "headers" / header, "\n".join(line.text for line in lines) + "\n")
    write(folder / "headers/start.dox", start_page(start))
    return written


def unlisted(headers: list[str]) -> list[str]:
    listed = topics(START.read_text(encoding="utf-8"))
    return [f"{header}: public, and not among the topics of {START.name}" for header in headers if header not in listed]


def run_doxygen(folder: Path) -> list[str]:
    """Its warnings."""
    version = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    number = re.search(r"VERSION (\d+\.\d+\.\d+)", version)[1]
    settings = SETTINGS.read_text(encoding="utf-8") + (
        f"INPUT = {folder}/headers {folder}/headers/start.dox\n"
        f"STRIP_FROM_PATH = {folder}/headers\nSTRIP_FROM_INC_PATH = {folder}/headers\n"
        f"OUTPUT_DIRECTORY = {folder}\nPROJECT_NUMBER = {number}\n"
        f"HTML_EXTRA_STYLESHEET = {ROOT}/docs/reference.css\n"
    )
    result = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True, check=False)
    warnings = [line for line in result.stderr.splitlines() if line.strip()]
    if result.returncode != 0 and not warnings:
        warnings.append(f"doxygen failed with exit code {result.returncode}")
    return warnings


def in_header(warning: str, written: dict[str, list[Line]]) -> str:
    """The warning with the place in the header that its line was made of."""
    match = WARNING.match(warning)
    if not match or match["file"] not in written:
        return warning
    lines = written[match["file"]]
    number = lines[min(int(match["line"]), len(lines)) - 1].number
    header = match["file"].split("/headers/", 1)[1]
    return f"{header}:{number}: {match['what']}"


def main() -> int:
    if not shutil.which("doxygen"):
        print("there is no doxygen: apt-get install doxygen")
        return 77
    list_of_headers, folder = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    kinds = read_headers(list_of_headers)
    headers = [header for header, kind in kinds.items() if kind == "public"]
    shutil.rmtree(folder, ignore_errors=True)
    written = write_input(headers, list_of_headers.parent / "include", folder)
    warnings = unlisted(headers) + [in_header(warning, written) for warning in run_doxygen(folder)]
    print(*warnings, sep="\n", end="\n" if warnings else "")
    print(f"reference: {len(headers)} headers, {len(warnings)} warnings; {folder}/html/index.html")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main())
