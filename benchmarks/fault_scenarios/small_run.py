"""A run that a scenario starts, kills and resumes: a small operator into a database and a log.

``python -m benchmarks.fault_scenarios.small_run --database FILE --log FILE --trials 16``
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from tvm import te

import ansor
from ansor.callbacks import Callback, Finish
from ansor.database.database import Database
from ansor.database.jsonl import import_jsonl
from ansor.targets.host.threads import module_path

_SIZE = 64  # of the product of matrices
_MOST_S = 1200.0  # of a run to its end: a search that hangs is killed by then
_REASONS = ("all trials spent", "time is up")  # of a search that nothing has ended early


def operator() -> list[te.Tensor]:
    """A product of matrices and a maximum, which take microseconds."""
    a = te.placeholder((_SIZE, _SIZE), name="A")
    b = te.placeholder((_SIZE, _SIZE), name="B")
    k = te.reduce_axis((0, _SIZE), name="k")
    c = te.compute((_SIZE, _SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, te.compute((_SIZE, _SIZE), lambda i, j: te.max(c[i, j], 0.0), name="D")]


@dataclass(frozen=True)
class Files:
    """The database and the log of runs in a folder.

    A run adds each record to the database first. A complete line of the log is therefore a record
    that was seen in the database.
    """

    database: Path
    log: Path

    @classmethod
    def of(cls, folder: Path, name: str = "run") -> Files:
        """Files with a common database; `name` distinguishes the logs."""
        return cls(folder / "records.db", folder / f"{name}.jsonl")

    def lost(self) -> int:
        """Complete lines of the log whose records are not in the database."""
        if not self.log.exists():
            return 0
        complete = self.log.with_suffix(".complete")
        text = self.log.read_bytes()
        complete.write_bytes(text[: text.rfind(b"\n") + 1])
        with Database(self.database) as database:
            return import_jsonl(database, complete).added

    def is_sound(self) -> bool:
        """Whether SQLite finds nothing damaged in the database."""
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    def count(self) -> int:
        """Records of the database."""
        with Database(self.database) as database:
            return int(database.count())

    def lines(self) -> int:
        """Complete lines of the log."""
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0


@contextmanager
def running(files: Files, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, which is killed at the end of the block.

    Args:
        files: of the run.
        arguments: further ones of the command.
    """
    command = [sys.executable, "-P", "-m", __name__, "--database", str(files.database)]
    with subprocess.Popen(
        [*command, "--log", str(files.log), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | module_path(),
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def error_of(process: subprocess.Popen[str]) -> str:
    """Waits for a run; "" if all is well, else the last line of its output."""
    output, _ = process.communicate(timeout=_MOST_S)
    lines = output.strip().splitlines() or ["no output"]
    return "" if process.returncode == 0 and lines[-1] in _REASONS else lines[-1]


def run_to_end(files: Files, *arguments: str) -> str:
    """Starts a run and waits for it; see `error_of`."""
    with running(files, *arguments) as process:
        return error_of(process)


class _Reason(Callback):
    def on_finish(self, finish: Finish) -> None:
        """See `Callback`."""
        click.echo(finish.reason)


@click.command()
@click.option("--database", required=True)
@click.option("--log", required=True)
@click.option("--trials", type=int)
@click.option("--minutes", type=float)
@click.option("--seed", type=int, default=0)
def main(database: str, log: str, trials: int | None, minutes: float | None, seed: int) -> None:
    """Tunes the operator and says why the search has ended."""
    ansor.auto_schedule(
        operator(),
        trials=trials,
        minutes=minutes,
        seed=seed,
        database=database,
        log=log,
        callbacks=[_Reason()],
    )


if __name__ == "__main__":
    main()
