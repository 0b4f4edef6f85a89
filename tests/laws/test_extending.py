"""The pages about extensions: one for each seam, with a short example that checks its result.

`tests/documents/test_every_block.py` runs the examples.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "extending").glob("*.md"))
MOST_LINES = 60


def test_there_is_a_page_for_each_seam() -> None:
    pages = ["cost_model", "database", "device", "mutator", "policy", "rule", "step", "target"]
    assert [page.stem for page in PAGES] == pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_is_short_and_checks_its_result(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert sum(len(block.splitlines()) for block in blocks) <= MOST_LINES
    assert "assert" in blocks[-1]
