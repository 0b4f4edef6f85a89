"""Runs that are killed at random moments, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.fault_scenarios.processes import left_after, marking
from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.fault_scenarios.small_run import Files, run_to_end, running

Kill = Callable[["subprocess.Popen[str]"], None]

_TRIALS = "32"  # two rounds
_GROUP = 5  # killed runs into one database, after which one runs to its end
_WITHIN_S = 5.0  # until the workers have ended


@dataclass(frozen=True)
class _Size:
    """Numbers of kills of the whole group and of the parent alone."""

    group: int
    parent: int


_SIZES: Mapping[Scale, _Size] = MappingProxyType(
    {Scale.QUICK: _Size(2, 1), Scale.FULL: _Size(50, 20)}
)


@dataclass
class _Tally:
    """The observations after all kills of a case."""

    kills: int = 0
    records: int = 0
    lost: int = 0
    damaged: int = 0
    alive: int = 0
    resumed: int = 0
    failed: str = ""


def run(scale: Scale) -> list[Row]:
    """Kills with and without the processes of the run's group."""
    size = _SIZES[scale]
    rows: list[Row] = []
    for name, count, kill in (
        ("process group", size.group, _kill_group),
        ("parent alone", size.parent, _kill_parent),
    ):
        case = Case(name, f"SIGKILL at {count} random moments")
        rows += _rows(case, _killed(count, kill, np.random.default_rng(count)))
    return rows


def _rows(case: Case, tally: _Tally) -> list[Row]:
    lost = f"{tally.lost} of {tally.records} lost, {tally.damaged} databases damaged"
    resumed = tally.failed or f"{tally.resumed} runs to the end"
    alive = f"{tally.alive} after {tally.kills} kills"
    return [
        case.row("no recorded result is lost", lost, not tally.lost and not tally.damaged),
        case.row("resumed runs end", resumed, bool(tally.resumed) and not tally.failed),
        case.row(f"no worker lives after {_WITHIN_S:.0f} s", alive, not tally.alive),
    ]


def _killed(count: int, kill: Kill, rng: np.random.Generator) -> _Tally:
    """Kills `count` runs. The runs of a group resume each other and then run to the end."""
    tally = _Tally()
    with tempfile.TemporaryDirectory() as folder:
        duration_s = _duration(Files.of(Path(folder)))
    while tally.kills < count:
        with tempfile.TemporaryDirectory() as folder:
            files = Files.of(Path(folder))
            for _ in range(min(_GROUP, count - tally.kills)):
                _kill_one(files, kill, float(rng.uniform(0, duration_s)), tally)
            tally.failed = run_to_end(files, "--trials", _TRIALS) or tally.failed
            tally.resumed += 1
            tally.records += files.lines()
            tally.lost += files.lost()
    return tally


def _duration(files: Files) -> float:
    """Seconds of a run that nothing kills."""
    began_s = time.monotonic()
    if failed := run_to_end(files, "--trials", _TRIALS):
        raise RuntimeError(failed)
    return time.monotonic() - began_s


def _kill_one(files: Files, kill: Kill, after_s: float, tally: _Tally) -> None:
    """Kills one run after `after_s` seconds, and examines its remains."""
    with (
        marking() as mark,
        running(files, "--trials", _TRIALS, "--seed", str(tally.kills)) as process,
    ):
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        kill(process)
    tally.kills += 1
    tally.alive += left_after(mark, _WITHIN_S)
    if files.database.exists():
        tally.lost += files.lost()
        tally.damaged += not files.is_sound()


def _kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_parent(process: subprocess.Popen[str]) -> None:
    process.kill()
