"""Injects faults into runs and checks what must hold.

``python -m benchmarks.faults --json FILE`` runs all scenarios of `benchmarks.fault_scenarios`, and
``--scenarios NAME,NAME`` some of them. Their rows replace those of the same scenarios in FILE. The
exit code is 1 if a row does not hold.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ansor.report.formatting import align
from benchmarks.environment import environment, write
from benchmarks.fault_scenarios import SCENARIOS
from benchmarks.fault_scenarios.row import Row, Scale

Scenario = Callable[[Scale], list[Row]]


def scenario_named(name: str) -> Scenario:
    """The function of a scenario."""
    found: Scenario = importlib.import_module(f"benchmarks.fault_scenarios.{name}").run
    return found


def rows_of(scenario: Scenario, scale: Scale) -> list[Row]:
    """The rows of a scenario; if it raises an exception, one row that does not hold."""
    began_s = time.monotonic()
    try:
        return scenario(scale)
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        seconds = time.monotonic() - began_s
        return [Row("exception", "-", "the scenario ends", text, False, seconds)]


def merged(file: str | None, run: dict[str, Any]) -> dict[str, Any]:
    """The document of a file with a run in place of an earlier one of the same scenario.

    Args:
        file: the result file, which need not exist.
        run: a document of one scenario, with the key "scenario".
    """
    runs: list[dict[str, Any]] = []
    if file is not None and Path(file).is_file():
        runs = json.loads(Path(file).read_text(encoding="utf-8"))["runs"]
    kept = [each for each in runs if each["scenario"] != run["scenario"]]
    order = {name: number for number, name in enumerate(SCENARIOS)}
    found = sorted([*kept, run], key=lambda each: order.get(each["scenario"], len(order)))
    return {"runs": found}


def table(scenario: str, rows: Sequence[Row]) -> str:
    """The rows for people."""
    cells = [
        (row.name, row.injected, row.required, row.observed, verdict(row), f"{row.seconds:.0f}")
        for row in rows
    ]
    header = (scenario, "injected", "required", "observed", "holds", "s")
    return align(header, cells, (0, 1, 2, 3, 4))


def verdict(row: Row) -> str:
    """Whether a row holds, in a word."""
    return {True: "yes", False: "NO", None: "not run"}[row.holds]


@click.command()
@click.option("--scenarios", metavar="NAMES", help="Separated by commas; by default all.")
@click.option(
    "--scale",
    type=click.Choice([scale.value for scale in Scale]),
    default=Scale.QUICK.value,
    show_default=True,
)
@click.option("--json", "file", metavar="FILE", help="For the rows; those of others are kept.")
def main(scenarios: str | None, scale: str, file: str | None) -> None:
    """Injects faults and checks what must hold."""
    names = SCENARIOS if scenarios is None else scenarios.split(",")
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise click.BadParameter(f"{', '.join(unknown)}: give some of {', '.join(SCENARIOS)}")
    failed = False
    for name in names:
        about = environment(scale=scale)
        rows = rows_of(scenario_named(name), Scale(scale))
        failed |= any(row.holds is False for row in rows)
        click.echo(f"{table(name, rows)}\n")
        results = [asdict(row) for row in rows]
        write(file, merged(file, {"environment": about, "scenario": name, "results": results}))
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
