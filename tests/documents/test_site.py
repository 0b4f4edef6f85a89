"""The navigation of the site has every page once, and the page of extras every extra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from markdown_page import PAGES, ROOT

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = None

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
# Pages of the repository's root, and their places on the site.
AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
ONLY_IN_THE_REPOSITORY = "docs/index.md"


def pages_of(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(part)


def test_the_navigation_has_every_page_once() -> None:
    expected = [
        AT_ROOT.get(page, page.removeprefix("docs/"))
        for page in PAGES
        if page != ONLY_IN_THE_REPOSITORY
    ]
    assert sorted(pages_of(CONFIG["nav"])) == sorted(expected)


def test_the_index_links_every_page() -> None:
    index = (ROOT / ONLY_IN_THE_REPOSITORY).read_text(encoding="utf-8")
    linked = {f"docs/{path}" for path in re.findall(r"\]\(([^)]+\.md)\)", index)}
    assert {p for p in PAGES if p.startswith("docs/")} - linked == {ONLY_IN_THE_REPOSITORY}


@pytest.mark.skipif(tomllib is None, reason="needs tomllib")
def test_every_extra_is_described() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)
    assert sorted(described) == sorted(project["optional-dependencies"])


def test_the_limits_name_every_comparison_that_is_lost() -> None:
    measured = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
    summary = r"^\| ([^|]+) \| ([^|]+) \| \d+ \| \*\*[\d.]+\*\* \| ([\d.]+) \| (\w+\.\d+) \|"
    rows = re.findall(summary, measured, re.MULTILINE)
    peers = [row for row in rows if not row[1].startswith("ansor")]
    assert len(peers) > 5
    limits = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([\d.]+) \| (\S+) \|$", limits, re.MULTILINE)
    assert sorted(named) == sorted(row for row in peers if float(row[2]) < 1)


def test_the_messages_of_other_refusals_are_in_the_code() -> None:
    limits = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    texts = re.findall(r"^\| `([^`]+)` \| ", limits, re.MULTILINE)
    assert len(texts) > 5
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "ansor").rglob("*.py"))
    assert [text for text in texts if text not in code] == []


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Any) -> None:
    pytest.importorskip("mkdocs")
    build = pytest.importorskip("mkdocs.commands.build").build
    load = pytest.importorskip("mkdocs.config").load_config
    build(load(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path / "site")))
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "auto-scheduler" in home
    commands = (tmp_path / "site/reference/command_line.html").read_text("utf-8")
    assert "--until-ms" in commands
    assert "Sentinel" not in commands  # a default of click that is none
    assert 'id="ansor.auto_schedule"' in (tmp_path / "site/reference/api.html").read_text("utf-8")
