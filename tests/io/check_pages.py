"""Checks a folder of pictures: every file is well-formed, every link leads to a file, every page is
reached from the first.

    check_pages.py FIRST_PAGE

Prints for each page the number of nodes (boxes of text) on it, and its name.
"""

import sys
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.links += [value for key, value in attributes if key in ("href", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def links_of(path: Path) -> list[str]:
    if path.suffix == ".html":
        return Page(path.read_text()).links
    return [a.get(HREF) for a in xml.parse(path).iter(SVG + "a") if a.get(HREF)]


def count_nodes(path: Path) -> int:
    return sum(group.get("class") == "node" for group in xml.parse(path).iter(SVG + "g"))


first = Path(sys.argv[1]).resolve()
reached = {first}
pending = [first]
while pending:
    page = pending.pop()
    for link in links_of(page):
        target = (page.parent / unquote(link)).resolve()
        assert target.is_file(), f"{page}: {link} leads nowhere"
        if target not in reached:
            reached.add(target)
            pending.append(target)

for folder in {page.parent for page in reached if page != first}:
    for file in folder.glob("*.svg"):
        assert file in reached or folder == first.parent, f"{file} is not reached"
for page in sorted(reached):
    if page.suffix == ".svg":
        print(count_nodes(page), page.name)
