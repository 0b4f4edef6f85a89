"""The options for limits, logs and transfer, on a device that answers from a formula."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from formula_device import FormulaDevice

from ansor.cli.main import main
from ansor.executor import in_turns

MODEL = "matmul:rows=16,columns=16,depth=16"


class Formula(FormulaDevice):
    """Takes the place of the worker processes."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__()


def tune(out: Path, *options: str) -> str:
    """Runs ``ansor tune``; returns what it prints."""
    arguments = ["tune", MODEL, "--preset", "quick", "--out", str(out), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(autouse=True)
def formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.run.measuring.LocalDevice", Formula)


def test_limits_log_and_transfer(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    limits = ["--trials-per-task", "5", "--tasks", "operator"]
    output = tune(tmp_path / "first", *limits, "--log", str(log))
    assert "until: each task has reached its limits" in output
    assert "[1/1] operator: current/best" in output
    assert len(log.read_text().splitlines()) == 5
    shown = CliRunner().invoke(main, ["show", "records", str(log)])
    assert "5 of 5 records" in shown.output
    output = tune(tmp_path / "second", "--early-stopping", "4", "--transfer", str(log))
    assert "transfer: records of 1 functions" in output


def test_a_name_that_fits_no_function_is_one_line(tmp_path: Path) -> None:
    arguments = ["tune", MODEL, "--trials", "1", "--tasks", "conv2d", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "tasks='conv2d': fits no function; name some of operator" in result.stderr
