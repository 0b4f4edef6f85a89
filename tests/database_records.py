"""Tasks, programs and measurements for tests of databases, and a process that records them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program
from ansor.program.steps import Inline, MultiLevelTile

STEPS = (MultiLevelTile("C", "SSRSRS", ("i", "j")), Inline("pad"))
FAILED = Measurement(error=ErrorKind.BUILD, message="no")


def make_task(key: str = "k1", target: str = "cpu") -> Any:
    """The attributes of a task that a database reads."""
    return SimpleNamespace(
        key=key, name=f"task {key}", target=target, dag=SimpleNamespace(text=f"text of {key}")
    )


def program(i: int) -> Program:
    """Programs that differ by their number."""
    return Program("tiled", STEPS, {"i": (i, 2, 3), "j": (4,)})


def took(seconds: float) -> Measurement:
    """A successful measurement."""
    return Measurement((seconds,), build_s=0.1, run_s=0.2)


_WRITER = """
import sys
sys.path[:0] = [{tests!r}]
from database_records import FAILED, make_task, program, took
from ansor.database import Database
database = Database({path!r})
for i in range(10**6):
    database.add_many(make_task(), [(program(i), took(1.0)), (program(i), FAILED)])
    print(i, flush=True)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    """A process that adds pairs of records until it is killed; it prints the number of each."""
    script = _WRITER.format(tests=str(Path(__file__).parent), path=str(path))
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
