"""The source of a function, with all that it uses of its file, as text that TorchScript compiles."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from composit import Error

_NUMBERS = (bool, int, float)


def source_of(function: Callable) -> tuple[str, str]:
    """The text of `function` and of the functions of its file that it calls, each at its own lines,
    so that errors point at them; and the file. Numbers that stand around them are written in.

    Error for a lambda, and for a function whose source is not to be had."""
    file = inspect.getsourcefile(function) or "<text>"
    lines: list[str] = []
    pending, done = [function], set()
    while pending:
        one = inspect.unwrap(pending.pop())
        if one in done:
            continue
        done.add(one)
        first, text = _text_of(one)
        tree = ast.parse(text)
        around = _variables(one)
        text = _with_numbers(text, tree, around)
        pending += _functions_in(tree, around, file)
        lines += [""] * (first - 1 + text.count("\n") + 1 - len(lines))
        lines[first - 1:first - 1 + text.count("\n") + 1] = text.split("\n")
    return "\n".join(lines) + "\n", file


def _text_of(function: Callable) -> tuple[int, str]:
    """The first line of `def`, from 1, and the text from there on, without its indentation."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        name = getattr(function, "__name__", repr(function))
        raise Error(f"[vmap] the source of {name} is not to be had; functions are compiled from the "
                    "file they stand in") from error
    text = textwrap.dedent("".join(lines)).rstrip()
    for number, line in enumerate(text.split("\n")):
        if line.startswith("def "):
            return first + number, "\n".join(text.split("\n")[number:])
    raise Error(f"[vmap] {inspect.getsourcefile(function)}:{first}: expected a function made by def, "
                f"received '{lines[0].strip()}'")


def _variables(function: Callable) -> dict[str, Any]:
    """What the function sees of its module and of the functions around it, by name."""
    found = inspect.getclosurevars(function)
    return {**found.globals, **found.nonlocals}


def _functions_in(tree: ast.AST, around: dict[str, Any], file: str) -> list[Callable]:
    found = []
    for node in ast.walk(tree):
        value = around.get(node.id) if isinstance(node, ast.Name) else None
        value = inspect.unwrap(value) if callable(value) else None
        if inspect.isfunction(value) and inspect.getsourcefile(value) == file:
            found.append(value)
    return found


def _with_numbers(text: str, tree: ast.AST, around: dict[str, Any]) -> str:
    """The text with numbers of the program in place of their names, in the same lines."""
    lines = [line.encode() for line in text.split("\n")]  # columns of `ast` count bytes
    names = [node for node in ast.walk(tree)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
             and isinstance(around.get(node.id), _NUMBERS)]
    for name in sorted(names, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line = lines[name.lineno - 1]
        number = f"({around[name.id]!r})".encode()
        lines[name.lineno - 1] = line[:name.col_offset] + number + line[name.end_col_offset:]
    return b"\n".join(lines).decode()
