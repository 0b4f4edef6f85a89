"""The example on each page about extensions runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ansor.targets import registry

PAGES = sorted((Path(__file__).parents[2] / "docs" / "extending").glob("*.md"))
MOST_LINES = 60
FILE = re.compile(r"# (\w+\.py)\n")  # the first line of a block that is a file of its own


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "_BACKENDS", dict(registry._BACKENDS))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        if (named := FILE.match(block)) is not None:
            (tmp_path / named[1]).write_text(block)
    (example,) = (block for block in blocks if FILE.match(block) is None)
    assert "assert" in example
    module = ModuleType(f"example_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(example, page.name, "exec", dont_inherit=True), module.__dict__)


def test_there_is_a_page_for_each_seam() -> None:
    pages = ["cost_model", "database", "device", "mutator", "policy", "rule", "step", "target"]
    assert [page.stem for page in PAGES] == pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_is_short(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert sum(len(block.splitlines()) for block in blocks) <= MOST_LINES
