"""A header with its comments as Doxygen reads them.

    for line in doxygen_lines("composit/ir/array.h", text, "graphs", {}): line.text, line.number

  * The header's first comment is about the file, and about what is named like the file.
  * A comment is about the declaration below it, and about those that follow without an empty line
    and have none of their own.
  * A comment behind a declaration is about that declaration; aligned comments below it go on.
  * Left out: private parts, `detail`, destructors, friend classes, deleted functions, forward declarations.
  * What stands in a namespace belongs to the topic that is given.
"""

import re
from pathlib import Path
from textwrap import dedent
from typing import Iterator, NamedTuple

from header_comments import Comment, comments_of, parts_of
from header_declarations import Item, declarations_of

NOT_SHOWN = re.compile(
    r"(template <.*>\s*)?(friend (class|struct)\b.*|(virtual )?~\w+\(.*|.*= delete;"
    r"|(class|struct|union) [\w:]+;|static_assert.*)$",
    re.DOTALL,
)
COPY = re.compile(r"(?:(\w+)& operator=|(\w+))\((?:const )?(\w+)&&?(?: \w+)?\)")
EQUALITY = re.compile(r"bool operator==\(const \w+&( \w+)?\) const\b")
DEFINITION = re.compile(
    r"^#define (?P<name>\w+)\((?P<parameters>[^)]*)\)(?P<body>(?:.*\\\n)*.*)$", re.MULTILINE
)
CLASS_NAME = re.compile(r"(?:class|struct|enum class|enum) (?:\[\[\w+\]\] )?(\w+)")


class Line(NamedTuple):
    number: int  # of the line of the header it was made of, from 1
    text: str


class Macro(NamedTuple):
    parameters: list[str]
    body: str


def macro_of(definition: re.Match) -> Macro:
    names = [name.strip() for name in definition["parameters"].split(",")]
    return Macro(names, definition["body"].replace("\\\n", "\n"))


def macros_of(text: str) -> dict[str, Macro]:
    """Macros with parameters that other headers may use: those that are not undefined again."""
    undefined = set(re.findall(r"#undef (\w+)", text))
    found = DEFINITION.finditer(text)
    return {macro["name"]: macro_of(macro) for macro in found if macro["name"] not in undefined}


def escaped(text: str) -> str:
    """Prose with nothing in it that Doxygen takes for a command; code in backticks stays."""
    pieces = text.split("`")
    for i in range(0, len(pieces), 2):
        piece = re.sub(r"([\\@<>#%&$~|\"])", r"\\\1", pieces[i])
        pieces[i] = re.sub(r"::", r"\\::", piece)
    return "`".join(pieces)


def bullet(line: str) -> str:
    """A line of a list without the indentation that would make it code."""
    return re.sub(r"^  ", "", line)


def documentation(comment: Comment) -> Iterator[str]:
    for part in parts_of(comment):
        yield ""
        if part.kind == "example":
            yield from ("@code{.cpp}", *(line[2:] for line in part.lines), "@endcode")
        elif part.kind == "text":
            yield from ("@code{.unparsed}", *dedent("\n".join(part.lines[1:-1])).split("\n"), "@endcode")
        else:
            yield from (escaped(bullet(line)) for line in part.lines)


def in_words(comments: list[Comment]) -> list[Line]:
    lines = []
    for comment in comments:
        first = True
        for text in documentation(comment):
            if first and not text:
                continue
            first = False
            lines.append(Line(comment.first + 1, text))
        lines.append(Line(comment.last + 1, ""))
    return lines


def documented(lines: list[Line], command: str = "") -> Iterator[Line]:
    if not lines and not command:
        return
    number = lines[0].number if lines else 1
    yield Line(number, f"/** {command}")
    yield from (Line(line.number, line.text.replace("*/", "* /")) for line in lines)
    yield Line(number, "*/")


def without_body(item: Item) -> str:
    """The declaration alone of a function that is defined in the header."""
    code = re.sub(r"\n\s*", "\n", item.code)
    at, depth = 0, 0
    while at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if code[at] == "{" and depth == 0 and not re.search(r"=\s*$|\w$", code[:at]):
            head = code[:at].rstrip()
            return re.sub(r"\)\s*:\s.*", ")", head, flags=re.DOTALL) + ";"
        at += 1
    return code


def each_variable(code: str) -> list[str]:
    """The declaration of each variable of `float a = {}, b = {};`: Doxygen documents the first alone."""
    depth, parts = 0, [""]
    for character in code.rstrip(";"):
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(character, 0)
        if character == "(" and depth == 1 and "=" not in parts[-1]:
            return [code]
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    first = re.match(r"(.*?[\s&*])(\w+)(\s*=.*)?$", parts[0], re.DOTALL)
    if len(parts) == 1 or not first:
        return [code]
    return [parts[0] + ";"] + [f"{first[1]}{part.strip()};" for part in parts[1:]]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def arguments_of(text: str) -> list[str]:
    """Those of a macro's call: commas in parentheses and strings separate none."""
    parts = re.findall(r'"(?:\\.|[^"\\])*"|.', text, re.DOTALL)
    arguments, depth = [""], 0
    for part in parts:
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += part
    return [argument.strip() for argument in arguments]


class Filter:
    def __init__(self, path: str, text: str, topic: str, macros: dict[str, "Macro"]):
        self.stem = Path(path).stem
        self.path = path
        self.topic = topic
        self.text = text
        self.undefined = set(re.findall(r"#undef (\w+)", text))
        self.macros = dict(macros)
        self.scope = "namespace"
        comments = comments_of(text)
        self.opening = in_words(comments[:1]) if comments and comments[0].first == 0 else []
        self.used_opening = False

    def lines(self) -> Iterator[Line]:
        yield from documented(self.opening, f"@file {self.path}\n@ingroup {self.topic}\n")
        yield from self.items(declarations_of(self.text), outermost=True)

    def items(self, items: list[Item], outermost: bool = False, shown: bool = True) -> Iterator[Line]:
        run: list[Line] = []  # the comment that goes on to what follows
        for item in items:
            if item.kind == "access":
                shown = item.code == "public:"
                yield Line(item.first + 1, item.code)
                run = []
            elif item.kind == "preprocessor":
                run = in_words(item.comment) or run
                yield from self.preprocessor(item)
            elif item.kind == "namespace":
                yield from self.namespace(item)
            elif shown and not outermost and not NOT_SHOWN.match(item.code) and not self.is_copy(item):
                own = in_words(item.comment)
                run = own or (run if item.follows and not EQUALITY.match(item.code) else [])
                yield from self.declaration(item, run or self.standard(item))
                if item.comment and item.comment[0].first >= item.first:
                    run = []  # It stands behind this declaration.

    def namespace(self, item: Item) -> Iterator[Line]:
        hidden = "std|spdlog|c10|.*\\bdetail" + ("" if self.path.endswith(".hpp") else "|fl")
        if re.match(rf"namespace ({hidden})\b", item.code):
            return
        yield Line(item.first + 1, item.code)
        yield Line(item.first + 1, f"/** @addtogroup {self.topic}\n@{{ */")
        yield from self.items(item.children)
        yield Line(item.last + 1, "/** @} */ }")

    def preprocessor(self, item: Item) -> Iterator[Line]:
        """Macros of the header's own are expanded where they are called, and not shown."""
        definition = DEFINITION.match(item.code)
        if definition:
            self.macros[definition["name"]] = macro_of(definition)
        own = item.code.startswith("#define") and not item.comment
        if item.code.startswith("#undef") or (own and not DEFINITION.match(item.code)):
            return
        if not definition or (item.comment and definition["name"] not in self.undefined):
            yield from documented(in_words(item.comment) if item.code.startswith("#define") else [])
            for i, text in enumerate(item.code.split("\n")):
                yield Line(item.first + 1 + i, text)

    def expanded(self, text: str) -> str:
        """`text` with calls of macros replaced, and those in what they stand for."""
        for call in re.finditer(r"\b([A-Z]\w*)\(", text):
            if call[1] not in self.macros:
                continue
            end, depth = call.end(), 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            parameters, body = self.macros[call[1]].parameters, self.macros[call[1]].body
            arguments = arguments_of(text[call.end() : end - 1])
            for name, argument in zip(parameters, arguments):
                body = re.sub(rf"\b{name}\b", lambda _, argument=argument: argument, body)
            return text[: call.start()] + self.expanded(body) + " " + self.expanded(text[end:])
        return text

    def declaration(self, item: Item, words: list[Line]) -> Iterator[Line]:
        number = item.first + 1
        if item.kind in ("class", "enum"):
            name = CLASS_NAME.search(item.code)
            if not words and name and snake_case(name[1]) == self.stem:
                words = self.opening
            yield from documented(words)
            yield Line(number, item.code)
            self.scope = "enum" if item.kind == "enum" else "class"
            begins_private = item.kind == "class" and re.search(r"^(template <.*>\s*)?class ", item.code)
            yield from self.items(item.children, shown=not begins_private)
            yield Line(item.last + 1, "};")
            self.scope = "namespace"
        elif item.kind == "value":
            yield from documented(words)
            yield Line(number, item.code + ",")
        elif item.kind == "macro":
            for made in declarations_of(self.expanded(item.code), self.scope):
                yield from documented(words or self.standard(made))
                yield Line(number, without_body(made) + ("," if self.scope == "enum" else ""))
        else:
            for code in each_variable(without_body(item)):
                yield from documented(words)
                yield from (Line(number + i, line) for i, line in enumerate(code.split("\n")))

    def is_copy(self, item: Item) -> bool:
        copy = COPY.match(item.code)
        return bool(copy) and (copy[1] or copy[2]) == copy[3]

    def standard(self, item: Item) -> list[Line]:
        """Words for what needs none in the header."""
        if EQUALITY.match(item.code):
            return [Line(item.first + 1, "Whether both are equal.")]
        if item.kind == "value":
            return [Line(item.first + 1, f"`{item.code.split(' ')[0]}`")]
        if re.match(r"\w+\(\) = default;$", item.code):
            return [Line(item.first + 1, "All members have their initial values.")]
        if made_of := re.match(r"(?:explicit )?[A-Z]\w*\(([^,()]+?) *\w*\)(?: :|;| \{)", item.code):
            return [Line(item.first + 1, f"Made of `{made_of[1]}`.")]
        if item.kind == "plain" and re.search(rf"\b{self.stem}\(", item.code):
            return self.opening
        if item.kind == "class" and (name := re.search(r"struct (\w+)(Options|Result)\b", item.code)):
            function = snake_case(name[1])
            if re.search(rf"\b{function}\(", self.text):
                role = "The options of" if name[2] == "Options" else "The results of"
                return [Line(item.first + 1, f"{role} `{function}`.")]
        return []


def doxygen_lines(path: str, text: str, topic: str, macros: dict[str, Macro]) -> list[Line]:
    """Lines of the result, with the lines of `text` that they come from."""
    lines = []
    for line in Filter(path, text, topic, macros).lines():
        lines += [Line(line.number, part) for part in line.text.split("\n")]
    return lines
