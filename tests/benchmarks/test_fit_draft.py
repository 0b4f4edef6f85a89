"""The fit of the draft's constants, as a command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tiny_drafts import NAMES, tiny

from ansor.targets.cpu.draft.constants import DEFAULTS
from benchmarks.draft_data import write
from benchmarks.draft_fitting import neutral_values, values_of
from benchmarks.fit_draft import main

FITTED = ("traffic_share", "jump_bytes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Measurements of two kinds of processors."""
    for kind in ("one", "two"):
        write(replace(tiny(), kind=kind), tmp_path / f"{kind}.json.xz")
    return tmp_path


def run(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["--data", str(folder), *options])


def written(folder: Path, *options: str) -> dict[str, Any]:
    """The result of a successful call as a document."""
    file = folder / "fit.json"
    found = run(folder, "--quick", "--folds", "2", *options, "--json", str(file))
    assert found.exception is None, found.output
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def test_constants_are_fitted(folder: Path) -> None:
    document = written(folder, "--constants", ",".join(FITTED))
    assert len(document["cases"]) == 2 * len(NAMES)
    before, fitted = document["values_before"], document["values_fitted"]
    assert before == values_of(DEFAULTS)
    assert {name for name in before if before[name] != fitted[name]} <= set(FITTED)
    assert set(document["left_out"]) == set(FITTED)


def test_values_are_kept(folder: Path) -> None:
    document = written(folder, "--keep-values")
    assert document["values_fitted"] == document["values_before"]
    assert document["fitted"] == document["before"]
    assert set(document["left_out"]) == set(neutral_values(DEFAULTS))


def test_a_constant_is_left_out(folder: Path) -> None:
    document = written(folder, "--keep-values", "--without", "jump_bytes")
    assert document["values_before"]["jump_bytes"] == 0
    assert "jump_bytes" not in document["left_out"]


def test_a_kind_is_held_out(folder: Path) -> None:
    """The times of both kinds are the same, so the fit is at least as good as before."""
    document = written(folder, "--hold-out", "two", "--constants", ",".join(FITTED))
    assert document["fitted"]["loss"] <= document["before"]["loss"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hold-out", "three"), "found: one, two"),
        (("--constants", "colour"), "'colour' is not a constant"),
        (("--without", "most_stack_bytes"), "'most_stack_bytes' is not a constant"),
    ],
)
def test_a_wrong_option_is_refused(options: tuple[str, ...], message: str, folder: Path) -> None:
    found = run(folder, *options)
    assert found.exit_code == 2
    assert message in found.output


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert "has no files of measurements" in run(tmp_path).output
