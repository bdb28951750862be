"""Code blocks of documents, with the lines they stand at.

    for block in plain_text_blocks(path): block.run(namespace)
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import textwrap
from typing import Any


@dataclasses.dataclass(frozen=True)
class Block:
    path: pathlib.Path
    first_line: int  # of the document, from 1
    text: str

    def run(self, namespace: dict[str, Any], **replacements: str) -> None:
        """Executes the block as lines of its document. `replacements`: what a name is set to,
        where the document leaves it open (`name = ...`)."""
        text = self.text
        for name, value in replacements.items():
            text, count = re.subn(rf"^{name} = \.\.\.$", f"{name} = {value}", text, flags=re.M)
            assert count == 1, f"{self}: expected one '{name} = ...'"
        exec(compile("\n" * (self.first_line - 1) + text, str(self.path), "exec"), namespace)

    def __str__(self) -> str:
        return f"{self.path.name}:{self.first_line}"


def plain_text_blocks(path: pathlib.Path) -> list[Block]:
    """The longest runs of lines that are Python, in a text whose code is not marked."""
    lines = path.read_text().splitlines()
    blocks = []
    begin = 0
    while begin < len(lines):
        end = _end_of_code(lines, begin)
        if end is None:
            begin += 1
            continue
        blocks.append(Block(path, begin + 1, "\n".join(lines[begin:end])))
        begin = end
    return blocks


def _end_of_code(lines: list[str], begin: int) -> int | None:
    """Behind the last line of the code that begins at a line; None where there is none."""
    if not lines[begin].strip() or lines[begin][0].isspace() or not _may_begin(lines[begin]):
        return None
    found = None
    for end in range(begin + 1, len(lines) + 1):
        if end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
            continue  # within what is indented, or before a blank line
        try:
            statements = ast.parse("\n".join(lines[begin:end])).body
        except SyntaxError:
            if found is not None and end - found > 30:
                break
            continue
        if not statements or _is_a_word(statements[0]) or _is_a_word(statements[-1]):
            continue
        found = end
    while found is not None and not lines[found - 1].strip():
        found -= 1
    return found


def _may_begin(line: str) -> bool:
    """Prose is seldom Python, and never looks like this."""
    return re.match(r"(import|from|def|@|for|with|assert|#|[\w.]+(: [\w.]+)? = |\(|[\w.]+\()",
                    line) is not None


def _is_a_word(statement: ast.stmt) -> bool:
    """A heading of one word is an expression."""
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call)


def restructured_text_blocks(path: pathlib.Path) -> list[Block]:
    """Literal blocks and code directives, those in cells of tables as well."""
    lines = path.read_text().splitlines()
    blocks = []
    for column in _columns(lines):
        blocks += _indented_blocks(path, column)
    return sorted(blocks, key=lambda block: block.first_line)


def _columns(lines: list[str]) -> list[list[str]]:
    """The text without tables, then each column of the tables; line i is line i of the document."""
    outside = list(lines)
    columns = [outside]
    borders: list[int] = []
    for number, line in enumerate(lines):
        if re.fullmatch(r"\+(-+\+)+", line):
            now = [i for i, character in enumerate(line) if character == "+"]
            if now != borders:
                borders = now
                columns += [[""] * len(lines) for _ in borders[1:]]
            outside[number] = ""
        elif borders and line.startswith("+") and len(line) == borders[-1] + 1:
            for cell, left, right in zip(columns[1 - len(borders):], borders, borders[1:]):
                cell[number] = line[left + 1:right].rstrip()
            outside[number] = ""
        else:
            borders = []
    return columns


def _indented_blocks(path: pathlib.Path, lines: list[str]) -> list[Block]:
    blocks = []
    number = 0
    while number < len(lines):
        line = lines[number]
        directive = re.match(r"\s*\.\. code(-block)?:: python$", line, re.I)
        literal = line.rstrip().endswith("::") and not line.lstrip().startswith("..")
        number += 1
        if not directive and not literal:
            continue
        indent = len(line) - len(line.lstrip())
        begin = number
        while number < len(lines) and (not lines[number].strip() or
                                       len(lines[number]) - len(lines[number].lstrip()) > indent):
            number += 1
        while not lines[begin].strip():
            begin += 1
        text = textwrap.dedent("\n".join(lines[begin:number])).rstrip()
        blocks.append(Block(path, begin + 1, text))
    return blocks
