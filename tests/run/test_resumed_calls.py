"""Calls of `auto_schedule` that were killed, interrupted or finished, and made again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from formula_device import FormulaDevice

import ansor
from ansor.callbacks import Callback, Round
from ansor.cli.main import main
from ansor.config import QUICK
from ansor.database import Database
from ansor.measure.device import OnResult, ignored
from ansor.measure.result import Measurement
from ansor.program.program import Program
from ansor.run.tuned.tuned_model import TunedModel
from ansor.task import Task
from ansor.workloads import build

TRIALS = 20
KILLED = """
import sys
sys.path[:0] = {path!r}
from test_resumed_calls import Mortal, call
call({database!r}, Mortal(last={last}))
"""


class Mortal(FormulaDevice):
    """Measures some programs; then it raises an error, or kills the process."""

    def __init__(self, last: int, error: type[BaseException] | None = None) -> None:
        super().__init__()
        self.last, self.error = last, error
        self.programs: list[Program] = []
        self.compared = False

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        results: list[Measurement] = []
        for number, program in enumerate(programs):
            if len(self.programs) == self.last:
                self._end()
            self.programs.append(program)
            results += super().measure(task, [program], best_s)
            on_result(number, results[-1])
        return results

    def _end(self) -> None:
        if self.error is not None:
            raise self.error
        os.kill(os.getpid(), signal.SIGKILL)

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        self.compared = True
        return super().compare(task, programs, rounds)


class Told(Callback):
    """Keeps the stages and the rounds."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.rounds: list[Round] = []

    def on_stage(self, text: str) -> None:
        self.stages.append(text)

    def on_round(self, done: Round) -> None:
        self.rounds.append(done)

    @property
    def resumed(self) -> list[str]:
        return [text for text in self.stages if text.startswith("resumed")]


class Failing(Callback):
    """Fails after the search."""

    def on_stage(self, text: str) -> None:
        if text == "compiling":
            raise OSError(text)


def call(database: str | Path, device: Mortal, **settings: Any) -> TunedModel:
    """A small operator, always with the same arguments."""
    tensors = list(build("matmul", rows=32, columns=40, depth=36).tensors)
    given = {"trials": TRIALS, "config": QUICK, "database": database, **settings}
    return ansor.auto_schedule(tensors, device=device, **given)


def patient() -> Mortal:
    return Mortal(last=10**6)


def test_a_killed_call_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    script = KILLED.format(path=path, database=str(file), last=13)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    shown = CliRunner().invoke(main, ["show", "runs", str(file)]).output
    assert "interrupted        13  0" in shown
    assert "trials=20 seed=0" in shown
    device, whole, told = patient(), patient(), Told()
    resumed = call(file, device, callbacks=[told])
    expected = call(tmp_path / "whole.db", whole)
    assert told.resumed == ["resumed: 13 of 20 trials, 0.0 min spent"]
    assert device.programs == whole.programs[13:]
    assert [(t.sketch, t.latency_s, t.trials) for t in resumed.tasks] == [
        (t.sketch, t.latency_s, t.trials) for t in expected.tasks
    ]
    assert resumed.finish is not None
    assert resumed.finish.trials == TRIALS
    assert sum(done.recalled for done in told.rounds) == 13
    assert "finished" in CliRunner().invoke(main, ["show", "runs", str(file)]).output
    with Database(file) as database:
        assert database.count() == TRIALS


def test_a_finished_call_begins_a_run_that_knows_the_records(tmp_path: Path) -> None:
    first, second, told = patient(), patient(), Told()
    call(tmp_path / "r.db", first)
    call(tmp_path / "r.db", second, callbacks=[told])
    assert told.resumed == []
    assert len(second.programs) == TRIALS
    assert not {repr(p) for p in first.programs} & {repr(p) for p in second.programs}


@pytest.mark.parametrize("resume", [True, False])
def test_an_interrupted_call_goes_on_unless_it_may_not(tmp_path: Path, resume: bool) -> None:
    first, second, told = Mortal(9, KeyboardInterrupt), patient(), Told()
    tuned = call(tmp_path / "r.db", first)
    assert tuned.finish is not None
    assert not tuned.finish.is_complete
    call(tmp_path / "r.db", second, callbacks=[told], resume=resume)
    assert len(told.resumed) == resume
    assert len(second.programs) == (TRIALS - 9 if resume else TRIALS)


def test_what_was_compared_is_not_compared_again(tmp_path: Path) -> None:
    """A call that fails after the search repeats neither the search nor the comparison."""
    first, second, told = patient(), patient(), Told()
    with pytest.raises(OSError, match="compiling"):
        call(tmp_path / "r.db", first, callbacks=[Failing()])
    assert first.compared
    tuned = call(tmp_path / "r.db", second, callbacks=[told])
    assert told.resumed == ["resumed: 20 of 20 trials, 0.0 min spent"]
    assert second.programs == []
    assert not second.compared
    with Database(tmp_path / "r.db") as database:
        (task,) = database.tasks()
        elected = database.elected(task.key, database.targets()[0])
    assert elected is not None
    assert tuned.tasks[0].sketch == elected.program.sketch
