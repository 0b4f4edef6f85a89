"""The example on each page about extensions runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "extending").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert "assert" in block
    module = ModuleType(f"example_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(block, page.name, "exec", dont_inherit=True), module.__dict__)


def test_there_is_a_page_for_each_seam() -> None:
    assert [page.stem for page in PAGES] == ["device", "policy", "rule", "step"]
