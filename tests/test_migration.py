"""Each cell on the right of the tables in docs/migration.md runs, on a tiny operator and a device
that answers from a formula."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from formula_device import FormulaDevice

import ansor
from ansor.cli.main import main
from ansor.executor import in_turns

PAGE = (Path(__file__).parents[1] / "docs" / "migration.md").read_text(encoding="utf-8")
(PRELUDE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
ROWS = re.findall(r"^\| (`.*`) \| (`.*`) \|$", PAGE, flags=re.MULTILINE)
SMALL = (  # budgets and sizes on the page are those of real runs
    (r"\b(trials|trials_per_task|early_stopping)=\d+", r"\1=2"),
    (r"--trials \d+", "--trials 2"),
    (r"\bminutes=\d+", "trials=2"),
    (r"\b(rows|columns|depth)=\d+", r"\1=8"),
    (r"\b64\b", "8"),
)


class Formula(FormulaDevice):
    """Takes the place of the worker processes."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__()


def small(code: str) -> str:
    for pattern, replacement in SMALL:
        code = re.sub(pattern, replacement, code)
    return code


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(small(code), "migration.md", "exec"), names)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a log, a database and a saved network, and the names of the page."""
    folder, names = tmp_path_factory.mktemp("migration"), dict[str, Any]()
    run(PRELUDE, names)
    tuned = ansor.auto_schedule(
        names["model"],
        trials=4,
        log=folder / "F.jsonl",
        database=folder / "F.sqlite",
        device=FormulaDevice(),
    )
    tuned.save(folder / "net.ansor")
    return folder, names


@pytest.mark.parametrize(("theirs", "ours"), ROWS)
def test_each_row_runs(
    theirs: str,
    ours: str,
    prepared: tuple[Path, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, names = prepared
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ansor.run.measuring.LocalDevice", Formula)
    codes = re.findall(r"`([^`]+)`", ours)
    assert codes
    known = dict(names)
    for code in codes:
        if code.startswith("ansor "):
            result = CliRunner().invoke(main, small(code).split()[1:])
            assert result.exit_code == 0, f"{theirs}: {result.output}"
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


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", PAGE))
def test_links_lead_somewhere(link: str) -> None:
    assert (Path(__file__).parents[1] / "docs" / link).exists()
