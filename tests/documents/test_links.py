"""Each relative link of a page leads to a file of the repository, and each anchor to a heading."""

from __future__ import annotations

import pytest
from markdown_page import PAGES, ROOT, anchors, links

ELSEWHERE = ("https://", "mailto:")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    wrong = []
    for link in links(page):
        if link.startswith(ELSEWHERE):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.is_relative_to(ROOT) or not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and anchor not in anchors(str(target.relative_to(ROOT))):
            wrong.append(f"{link}: no such heading")
    assert not wrong


def test_a_page_has_links() -> None:
    assert "docs/measured.md" in list(links("README.md"))
    assert "refused-models" in anchors("docs/imports.md")
