"""The documented exit statuses, the version, and the completion of shells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import ansor
from ansor.cli.main import main
from ansor.diagnosis import doctor
from ansor.diagnosis.finding import DoctorReport, Finding, State

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
DOCUMENTED = {int(status) for status in re.findall(r"^\| (\d+) \|", PAGE, re.M)}


def status_of(*arguments: str) -> int:
    return CliRunner().invoke(main, arguments).exit_code


def in_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "ansor", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_these_statuses_are_documented() -> None:
    assert {0, 1, 2, 130} == DOCUMENTED


def test_0_after_success() -> None:
    done = in_process("--version")
    assert done.returncode == 0
    assert done.stdout == f"ansor, version {ansor.__version__}\n"


def test_1_if_the_machine_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    found = DoctorReport((Finding("peak", "low", State.WRONG, "cool it"),))
    monkeypatch.setattr(doctor, "doctor", lambda **given: found)
    assert status_of("doctor") == 1


def test_1_and_a_trace_after_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**given: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(doctor, "doctor", fail)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune",),
        ("nothing",),
        ("tune", "resnet18", "--nothing"),
        ("completion", "nothing"),
        ("show", "records", "/nowhere/db.sqlite"),
        ("show", "task", "nothing"),
    ],
)
def test_2_after_a_mistake(arguments: tuple[str, ...]) -> None:
    assert status_of(*arguments) == 2


def test_130_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "doctor", interrupt)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 130
    assert result.stderr == "ansor: interrupted\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_the_command(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_ANSOR_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ansor", "tu"), {"plain,tune"}),
        (("ansor", "show", "rec"), {"plain,records"}),
        (("ansor", "tune", "--prec"), {"plain,--precision"}),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: set[str]) -> None:
    position = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = in_process(_ANSOR_COMPLETE="bash_complete", **position)
    assert set(done.stdout.splitlines()) == expected
