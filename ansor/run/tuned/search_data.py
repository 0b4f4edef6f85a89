"""The data of a search for its report."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from datetime import datetime, timezone

import numpy as np

from ansor.callbacks import Finish
from ansor.database.record import here_and_now
from ansor.program.program import Program
from ansor.program.pseudo_code import show_program
from ansor.program.sketch import Population, Sketch
from ansor.report.document.search_data import MachineFigures, SearchData
from ansor.run.tuned.chosen_programs import ChosenPrograms
from ansor.run.tuned.search_history import SearchHistory
from ansor.targets.machine import Machine
from ansor.targets.registry import backend_of
from ansor.targets.target import Target, target_text


def data_of_search(
    finish: Finish, history: SearchHistory, programs: ChosenPrograms, target: Target
) -> SearchData:
    """The data of a search in a report.

    Args:
        finish: its end.
        history: of its measurements.
        programs: the chosen ones.
        target: of the programs.
    """
    return SearchData(
        machine=machine_figures(history.machine, target),
        trials=history.measured,
        functions=history.functions,
        compiled={name: task.name for name, (task, _) in programs.of.items()},
        loops=loop_nests(history, programs),
        reason=finish.reason,
        elapsed_s=finish.elapsed_s,
    )


def loop_nests(history: SearchHistory, programs: ChosenPrograms) -> dict[str, str]:
    """The programs of a network as pseudo code, by function; untuned ones are left out."""
    found = {
        name: loop_nest(history.sketches(task), program)
        for name, (task, program) in programs.of.items()
        if program.steps
    }
    return {name: text for name, text in found.items() if text is not None}


def loop_nest(sketches: Sequence[Sketch], program: Program) -> str | None:
    """A program as pseudo code; None if it is of no known sketch."""
    for sketch in sketches:
        row = sketch.row_of(program)
        if row is not None:
            return show_program(Population(sketch, np.asarray(row)[None]))
    return None


def machine_figures(machine: Machine, target: Target) -> MachineFigures:
    """The limits of a machine; None for unknown ones."""
    peak_flops, bandwidth = map(_known, (machine.peak_flops, machine.memory_bandwidth))
    properties = dict(backend_of(target).machine.describe(machine))
    return MachineFigures(machine.name, peak_flops, bandwidth, properties)


def _known(rate: float) -> float | None:
    return float(rate) if math.isfinite(rate) else None


def environment(target: Target, threads: int, seed: int) -> dict[str, str]:
    """Versions, system and settings of a run that ends here."""
    here = here_and_now(seed)
    when = datetime.fromtimestamp(here.time_s, timezone.utc)
    return {
        "time": f"{when:%Y-%m-%d %H:%M:%S} UTC",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "target": target_text(target, threads),
        "threads": str(threads),
        "seed": str(seed),
        **{f"version of {name}": version for name, version in here.versions.items()},
    }
