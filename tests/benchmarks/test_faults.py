"""The benchmark that injects faults: its rows, its exit code and its result files."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import fault_scenarios, faults
from benchmarks.fault_scenarios.row import Case, Row, Scale


def rows(holds: bool | None, name: str = "a case") -> list[Row]:
    return [Case(name, "a fault").row("what must hold", "what was seen", holds)]


@pytest.fixture
def scenarios(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Functions of made-up scenarios, by name."""
    found: dict[str, Any] = {"first": lambda scale: rows(True), "second": lambda scale: rows(None)}
    monkeypatch.setattr(faults, "SCENARIOS", tuple(found))
    for name in found:
        module = SimpleNamespace(run=lambda scale, name=name: found[name](scale))
        monkeypatch.setitem(sys.modules, f"benchmarks.fault_scenarios.{name}", module)
    return found


def run(*arguments: str) -> Any:
    return CliRunner().invoke(faults.main, arguments)


@pytest.mark.parametrize("name", fault_scenarios.SCENARIOS)
def test_every_scenario_is_a_function_of_its_scale(name: str) -> None:
    function = importlib.import_module(f"benchmarks.fault_scenarios.{name}").run
    assert list(inspect.signature(function).parameters) == ["scale"]


def test_a_failed_row_is_exit_code_1(scenarios: dict[str, Any]) -> None:
    assert run().exit_code == 0  # a case that cannot be injected is no failure
    scenarios["second"] = lambda scale: rows(False)
    done = run()
    assert done.exit_code == 1
    assert done.output.count("what must hold") == 2
    assert run("--scenarios", "first").exit_code == 0


def test_an_exception_is_a_row_that_does_not_hold(scenarios: dict[str, Any]) -> None:
    def broken(scale: Scale) -> list[Row]:
        raise OSError("no space left")

    scenarios["first"] = broken
    done = run()
    assert done.exit_code == 1
    assert "OSError: no space left" in done.output
    assert "not run" in done.output  # the second scenario


def test_runs_replace_those_of_the_same_scenario(scenarios: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    run("--scenarios", "second", "--json", str(file))
    run("--json", str(file), "--scenarios", "first", "--scale", "full")
    scenarios["second"] = lambda scale: rows(False, "another case")
    run("--scenarios", "second", "--json", str(file))
    first, second = json.loads(file.read_text())["runs"]
    assert (first["scenario"], first["environment"]["scale"]) == ("first", "full")
    assert (second["scenario"], second["environment"]["scale"]) == ("second", "quick")
    assert [row["name"] for row in second["results"]] == ["another case"]
    assert second["results"][0]["holds"] is False


def test_an_unknown_scenario_is_refused(scenarios: dict[str, Any]) -> None:
    done = run("--scenarios", "first,third")
    assert done.exit_code == 2
    assert "third: give some of first, second" in done.output
