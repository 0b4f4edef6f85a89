"""Each cell on the right of the tables in docs/migration.md runs, on a tiny operator and a device
that answers from a formula."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from block_runner import run_command, run_python
from formula_device import FormulaDevice, LocalFormula
from markdown_page import ROOT, blocks

import ansor

NAME = "docs/migration.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
(PRELUDE,) = blocks(NAME)
ROWS = re.findall(r"^\| (`.*`) \| (`.*`) \|$", PAGE, flags=re.MULTILINE)
SMALL = (  # budgets and sizes on the page are those of real runs
    (r"\b(trials|trials_per_task|early_stopping)=\d+", r"\1=2"),
    (r"--trials \d+", "--trials 2"),
    (r"\bminutes=\d+", "trials=2"),
    (r"\b(rows|columns|depth)=\d+", r"\1=8"),
    (r"\b64\b", "8"),
)


def small(code: str) -> str:
    for pattern, replacement in SMALL:
        code = re.sub(pattern, replacement, code)
    return code


def run(code: str, names: dict[str, Any]) -> None:
    run_python(small(code), NAME, names)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a log, a database and a saved network, and the names of the page."""
    folder, names = tmp_path_factory.mktemp("migration"), dict[str, Any]()
    run(PRELUDE.code, names)
    tuned = ansor.auto_schedule(
        names["model"],
        trials=4,
        log=folder / "F.jsonl",
        database=folder / "F.sqlite",
        device=FormulaDevice(),
    )
    tuned.save(folder / "net.ansor")
    return folder, names


@pytest.mark.parametrize("ours", [ours for _, ours in ROWS])
def test_each_row_runs(
    ours: str,
    prepared: tuple[Path, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, names = prepared
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ansor.run.measuring.LocalDevice", LocalFormula)
    codes = re.findall(r"`([^`]+)`", ours)
    assert codes
    known = dict(names)
    for code in codes:
        if code.startswith("ansor "):
            run_command(small(code).split())
        else:
            run(code, known)
    if "tuned" in known:
        ones = np.ones((8, 8), dtype=np.float32)
        assert np.allclose(known["tuned"](ones, ones), 8)


def test_every_row_of_the_page_is_run() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    headers = [line for line in lines if line.endswith("| ansor |")]
    assert len(headers) == 4
    assert len(ROWS) == len(lines) - len(headers)
