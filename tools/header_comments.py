"""Comments of headers, as this project writes them: // lines before what they are about.

    for comment in comments_of(text):
        for part in parts_of(comment):    # paragraphs, lists, examples

A comment consists of paragraphs. An indented one (three spaces and more) that is no list is an
example in C++, which tests/headers compiles; one between lines "```text" and "```" is text of
another kind: a grammar, a program's text, a picture.
"""

import re
from typing import Iterator, NamedTuple

COMMENT = re.compile(r"^(\s*)//(?!/)( ?)(.*)$")
BULLET = re.compile(r"^\s*(\*|\d+\.) ")


class Comment(NamedTuple):
    first: int  # index of its first line in the text
    last: int  # index of its last line
    indent: int
    lines: list[str]  # without "// "


class Part(NamedTuple):
    kind: str  # "prose", "list", "example", "text"
    first: int  # index of its first line among those of the comment
    lines: list[str]


def comments_of(text: str) -> list[Comment]:
    """Runs of lines that consist of a comment alone, of one indentation, in order."""
    found: list[Comment] = []
    for number, line in enumerate(text.splitlines()):
        match = COMMENT.match(line)
        if not match:
            continue
        indent, content = len(match[1]), match[3].rstrip()
        if found and found[-1].last == number - 1 and found[-1].indent == indent:
            found[-1] = found[-1]._replace(last=number)
            found[-1].lines.append(content)
        else:
            found.append(Comment(number, number, indent, [content]))
    return found


def kind_of(line: str) -> str:
    if line.startswith("```"):
        return "text"
    if BULLET.match(line):
        return "list"
    return "example" if line.startswith("  ") else "prose"


def parts_of(comment: Comment) -> Iterator[Part]:
    """Paragraphs in order; an example that goes on after an empty line is one."""
    lines = comment.lines
    at = 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        kind, end = kind_of(lines[at]), at + 1
        if kind == "text":
            while end < len(lines) and lines[end] != "```":
                end += 1
            end += 1
        elif kind == "example":
            while end < len(lines) and (not lines[end] or kind_of(lines[end]) == "example"):
                end += 1
        elif kind == "list":
            while end < len(lines) and (kind_of(lines[end]) in ("list", "example") and lines[end]):
                end += 1
        else:
            while end < len(lines) and lines[end] and kind_of(lines[end]) == "prose":
                end += 1
        part = lines[at:end]
        while not part[-1]:
            part.pop()
        yield Part(kind, at, part)
        at = end
