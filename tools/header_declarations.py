"""The declarations of a header, with the comments that are about them.

    for item in declarations_of(text): item.kind, item.code, item.comment, item.children

Good for headers of this project as clang-format leaves them, not for C++ in general.
"""

import re
from dataclasses import dataclass, field

from header_comments import Comment, comments_of

OPENERS = {"namespace": r"namespace\b", "enum": r"enum\b", "class": r"(template\s*<.*>\s*(requires.*)?)?(class|struct|union)\b"}
MACRO_CALL = re.compile(r"^[A-Z][A-Z0-9_]+\(.*\)$")
FORMAT = re.compile(r"^clang-format (on|off)$")
ACCESS = re.compile(r"^\s*(public|private|protected):$")


@dataclass
class Item:
    kind: str  # "namespace", "class", "enum", "value", "plain", "macro", "access", "preprocessor"
    first: int  # index of its first line
    last: int = -1
    begin: int = 0  # its code in the text; of a scope: up to and with its brace
    end: int = 0
    code: str = ""  # without comments
    comment: list[Comment] = field(default_factory=list)  # before it, then those behind its lines
    follows: bool = False  # nothing, not even an empty line, between it and the declaration before
    children: list["Item"] = field(default_factory=list)


def without_comments(text: str) -> tuple[str, str, dict[int, tuple[int, str]]]:
    """`text` with spaces for comments; the same with _ for what stands in strings; comments behind
    code by line: column and text."""
    out, plain, behind, at, line, start = [], [], {}, 0, 0, 0
    while at < len(text):
        if text.startswith("//", at):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if text[start:at].strip() and not text.startswith("// NOLINT", at):
                behind[line] = (at - start, text[at + 2 : end].strip())
            out.append(" " * (end - at))
            plain.append(" " * (end - at))
            at = end
        elif text[at] == '"' or (text[at] == "'" and not text[at - 1].isalnum()):
            end = at + 1
            while text[end] != text[at]:
                end += 2 if text[end] == "\\" else 1
            out.append(text[at : end + 1])
            plain.append(text[at] + "_" * (end - at - 1) + text[at])
            at = end + 1
        else:
            if text[at] == "\n":
                line, start = line + 1, at + 1
            out.append(text[at])
            plain.append(text[at])
            at += 1
    return "".join(out), "".join(plain), behind


class Parser:
    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()
        self.shown, self.code, self.behind = without_comments(text)
        self.code_lines = self.code.splitlines()
        self.comments = [comment for comment in comments_of(text) if not FORMAT.match(comment.lines[0])]
        self.ending_at = {comment.last: comment for comment in self.comments}
        self.starting_at = {comment.first: comment for comment in self.comments}
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.at = 0

    def line_of(self, position: int) -> int:
        low, high = 0, len(self.starts) - 1
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= position else (low, middle)
        return low

    def parse(self, scope: str = "namespace") -> list[Item]:
        """The items of a scope, up to its closing brace, which is left to the caller."""
        items: list[Item] = []
        while True:
            while self.at < len(self.code) and self.code[self.at] in " \n;":
                self.at += 1
            if self.at >= len(self.code) or self.code[self.at] == "}":
                return items
            item = self.item(scope)
            item.last = self.line_of(item.end - 1)
            self.attach(item, items[-1] if items else None)
            items.append(item)

    def item(self, scope: str) -> Item:
        begin = self.at
        first = self.line_of(begin)
        line = self.code_lines[first].strip()
        if line.startswith("#"):
            last = first
            while self.code_lines[last].rstrip().endswith("\\"):
                last += 1
            return self.ended(Item("preprocessor", first, begin=begin), self.starts[last + 1] - 1)
        if ACCESS.match(line) or MACRO_CALL.match(line):
            kind = "access" if ACCESS.match(line) else "macro"
            return self.ended(Item(kind, first, begin=begin), self.starts[first + 1] - 1)
        return self.value(first, begin) if scope == "enum" else self.declaration(first, begin)

    def ended(self, item: Item, end: int) -> Item:
        item.end = end
        item.code = self.shown[item.begin : end].strip()
        self.at = end
        return item

    def value(self, first: int, begin: int) -> Item:
        end = begin
        while self.code[end : end + 1] not in (",", "}", ""):
            end += 1
        item = self.ended(Item("value", first, begin=begin), end)
        item.end = begin + len(self.code[begin:end].rstrip())
        self.at += self.code[end : end + 1] == ","
        return item

    def declaration(self, first: int, begin: int) -> Item:
        depth, at = 0, begin
        while True:
            character = self.code[at]
            if character == "(":
                depth += 1
            elif character == ")":
                depth -= 1
            elif character == ";" and depth == 0:
                return self.ended(Item("plain", first, begin=begin), at + 1)
            elif character == "{":
                head = self.code[begin:at]
                for kind, pattern in OPENERS.items():
                    if depth == 0 and re.match(pattern, head.strip(), re.DOTALL):
                        return self.scope(Item(kind, first, begin=begin), at)
                at = self.closing(at)
                rest = self.code[at + 1 : at + 300].lstrip(" ")[:1]
                if depth == 0 and rest not in (";", ",", "}", ".", "(", ")", "{"):
                    return self.ended(Item("plain", first, begin=begin), at + 1)
            at += 1

    def closing(self, at: int) -> int:
        """The brace that closes the one at `at`."""
        depth = 0
        while True:
            depth += {"{": 1, "}": -1}.get(self.code[at], 0)
            if depth == 0:
                return at
            at += 1

    def scope(self, item: Item, brace: int) -> Item:
        self.ended(item, brace + 1)
        item.children = self.parse(item.kind)
        self.at += 1  # the brace
        if item.kind != "namespace":
            self.at = self.code.index(";", self.at) + 1
        return item

    def attach(self, item: Item, before: Item | None) -> None:
        """Comments before it, and those behind its own lines with what goes on below them."""
        starts_line = not self.code[self.starts[item.first] : item.begin].strip()
        if starts_line and (comment := self.ending_at.get(item.first - 1)):
            if comment.first - 1 not in self.behind or comment.indent != self.behind[comment.first - 1][0]:
                item.comment.append(comment)
        item.follows = not item.comment and before is not None and (
            before.last >= item.first - 1 or self.only_comments(before.last + 1, item.first)
        )
        body = self.code[item.begin : item.end]
        last = item.first if item.kind == "plain" and "{" in body and "}" in body else item.last
        if item.kind == "plain" and item.last - item.first < 3:
            last = item.last
        if item.kind in ("namespace", "class", "enum", "preprocessor", "access"):
            last = item.first if item.kind in ("class", "enum") else -1
        for line in range(item.first, last + 1):
            if line in self.behind:
                column, text = self.behind[line]
                below = self.starting_at.get(line + 1)
                goes_on = below.lines if below and below.indent == column else []
                item.comment.append(Comment(line, line, column, [text, *goes_on]))

    def only_comments(self, first: int, last: int) -> bool:
        return all(self.lines[line].strip().startswith("//") for line in range(first, last))


def declarations_of(text: str, scope: str = "namespace") -> list[Item]:
    return Parser(text + "\n").parse(scope)
