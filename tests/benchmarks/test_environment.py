"""The commit that a benchmark names is that of the measured code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.environment import commit


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "code.py").write_text("1\n", encoding="utf-8")
    author = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "code")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_result_file_is_no_change_of_the_code(checkout: Path) -> None:
    clean = commit(checkout)
    assert clean is not None
    (checkout / "docs" / "result.json").write_text("{}", encoding="utf-8")
    assert commit(checkout) == clean


@pytest.mark.parametrize("file", ["code.py", "other.py"])
def test_changed_code_is_marked(checkout: Path, file: str) -> None:
    clean = commit(checkout)
    (checkout / file).write_text("2\n", encoding="utf-8")
    assert commit(checkout) == f"{clean}+"


def test_outside_a_checkout_there_is_none(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
