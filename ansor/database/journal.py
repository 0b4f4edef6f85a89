"""`Journal`: the measurements and times of a run, to resume it after a kill of its process.

A resumed run repeats its search. The journal replaces the device and the clock, until the search
reaches the point of the interruption. Then the device and the clock take over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ansor.database import runs
from ansor.database.database import Database, TaskEntry
from ansor.database.known import EVERYTHING, Known
from ansor.database.record import Record, here_and_now
from ansor.database.run_clock import RunClock
from ansor.database.runs import RunProgress, RunRequest, RunRow
from ansor.database.schema import transaction
from ansor.measure.result import Measurement
from ansor.program.codec import encode
from ansor.program.program import Program

if TYPE_CHECKING:  # a task imports TVM
    from ansor.task import Task

NAMELESS = RunRequest()


class Journal:
    """One run in a database. It sees the records from before the run, and its own.

    Args:
        database: of the earlier and new records.
        source: of the time, in seconds; see `RunClock`.
        request: the identity and the settings of the run.
        interrupted: the run that is resumed; None for a run that begins.

    Attributes:
        clock: of the run.
        recovered: measurements of the interrupted run.
        ended_s: time of that run's last measurement, in seconds since 1970; None after a new one.
    """

    def __init__(
        self,
        database: Database,
        source: Callable[[], float] = time.monotonic,
        request: RunRequest = NAMELESS,
        interrupted: RunRow | None = None,
    ) -> None:
        self._database, self._request = database, request
        self._recorded: dict[tuple[str, str], tuple[int, Record]] = {}  # not repeated yet
        self._shown = 0  # number of the last record of a round that was repeated
        self._is_live = interrupted is None
        self.interrupted = interrupted
        if interrupted is None:
            self.clock = RunClock(source)
            self._number, self._horizon = None, _last_number(database)
        else:
            run = interrupted.number
            readings = runs.readings_of(database.connection, run)
            self.clock = RunClock(source, readings, interrupted.spent_s)
            self._number, self._horizon = run, interrupted.horizon
            for number, record in runs.records_of(database.connection, run):
                self._recorded[_key(record.task_key, record.program)] = number, record
        times = [record.origin.time_s for _, record in self._recorded.values()]
        self.recovered, self.ended_s = len(times), max(times, default=None)

    @property
    def is_repeating(self) -> bool:
        """Whether some measurements of the interrupted run have not been repeated."""
        return bool(self._recorded)

    def recall(self, task: Task, programs: Sequence[Program]) -> tuple[dict[int, Measurement], int]:
        """Measurements of programs by the interrupted run.

        Returns:
            the measurements by the place of their program, and the number of the last record.
        """
        found: dict[int, Measurement] = {}
        last = 0
        for i, program in enumerate(programs):
            number, record = self._recorded.pop(_key(task.key, program), (0, None))
            if record is not None:
                found[i], last = record.measurement, max(last, number)
        return found, last

    def show(self, last: int) -> None:
        """Makes records of the run up to a number visible, because a round was repeated."""
        self._shown = max(self._shown, last)

    def go_on(self) -> None:
        """Ends the repetition before a new measurement; the clock continues."""
        self._is_live = True
        self.clock.go_on()

    def give_up(self, keys: Collection[str]) -> list[Record]:
        """Returns the records of tasks that were not repeated, and forgets all such records."""
        left = sorted(self._recorded.values(), key=lambda pair: pair[0])
        self._recorded.clear()
        return [record for _, record in left if record.task_key in keys]

    def add(
        self,
        task: Task,
        program: Program,
        measurement: Measurement,
        seed: int,
        host: str | None = None,
    ) -> None:
        """Records a new measurement, durably; see `Database.add_many` for the arguments.

        Raises:
            DatabaseError: it cannot be written.
        """
        if self._number is None:
            with transaction(self._database.connection):
                number = runs.begin(self._database.connection, self._request, self._horizon)
            self._number = number
        entry = TaskEntry(task.key, task.name, task.dag.text)
        record = Record(task.key, task.target, program, measurement, here_and_now(seed, host))
        unwritten = dict(self.clock.unwritten)
        progress = RunProgress(self._number, self.clock.now(), unwritten)
        self._database.add_records([entry], [record], progress)
        self.clock.unwritten.clear()
        self.ended_s = None

    def records(self, key: str, target: str) -> list[Record]:
        """The known records of a task; see `Database.records`."""
        return self._database.records(key, target, self._known)

    def winners(self, target: str, besides: str) -> list[Record]:
        """The known winners of tasks; see `Database.winners`."""
        return self._database.winners(target, besides, self._known)

    @property
    def _known(self) -> Known:
        until = EVERYTHING.until if self._is_live else self._shown
        return Known(self._horizon, self._number, until)

    def finish(self) -> None:
        """Records that the run is complete.

        Raises:
            DatabaseError: it cannot be written.
        """
        if self._number is not None:
            with transaction(self._database.connection):
                runs.finish(self._database.connection, self._number)

    def release(self) -> None:
        """Lets other processes resume the run.

        Raises:
            DatabaseError: it cannot be written.
        """
        if self._number is not None:
            with transaction(self._database.connection):
                runs.own(self._database.connection, self._number, None)


def open_journal(
    database: Database, source: Callable[[], float], request: RunRequest, resume: bool
) -> Journal:
    """The journal of a run: of an interrupted one with the same identity, or of a new one.

    Args:
        database: of the earlier and new records.
        source: of the time, in seconds.
        request: the identity and the settings of the run.
        resume: whether an interrupted run is resumed.

    Raises:
        DatabaseError: the database cannot be written.
    """
    interrupted = None
    if resume:
        with transaction(database.connection):
            interrupted = runs.open_run(database.connection, request.identity)
            if interrupted is not None:
                runs.own(database.connection, interrupted.number, runs.this_process())
    return Journal(database, source, request, interrupted)


def _last_number(database: Database) -> int:
    ((number,),) = database.query("SELECT MAX(id) FROM records")
    return number or 0


def _key(task_key: str, program: Program) -> tuple[str, str]:
    return task_key, encode(program)
