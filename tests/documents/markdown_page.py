"""A page of the documentation as its code blocks, links and anchors; markdown-it reads Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = (*FILES, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))


@dataclass(frozen=True)
class Block:
    """A code block. `line` is the number of its first line of code, from 1."""

    language: str
    code: str
    line: int


@cache
def tokens(page: str) -> list[Token]:
    """The page, by its path relative to the root of the repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return MarkdownIt("commonmark").enable("table").parse(text)


def blocks(page: str) -> list[Block]:
    """The code blocks in their order. An indented block has no language."""
    return [
        Block(token.info.strip(), token.content, token.map[0] + 2)
        for token in tokens(page)
        if token.type in ("fence", "code_block") and token.map
    ]


def links(page: str) -> Iterator[str]:
    """The destinations of all links and images."""
    for token in tokens(page):
        for child in token.children or ():
            for attribute in ("href", "src"):
                if attribute in child.attrs:
                    yield str(child.attrs[attribute])


def anchors(page: str) -> set[str]:
    """The anchors of the headings. A heading that repeats has one anchor here."""
    found = set()
    for opening, heading in pairwise(tokens(page)):
        if opening.type == "heading_open":
            children = heading.children or ()
            text = "".join(c.content for c in children if c.type in ("text", "code_inline"))
            found.add(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip()))
    return found
