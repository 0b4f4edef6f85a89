"""`Trials`: the measurements of a task in the form that an explanation needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.config import EXPLAIN, ExplainConfig
from ansor.database.record import Record
from ansor.measure.result import ErrorKind
from ansor.program.program import Program


@dataclass(frozen=True)
class Trial:
    """One measurement.

    Attributes:
        sketch: name of the program's sketch.
        latency_s: seconds of one run; None if the program failed or is wrong.
        error: kind of the failure; None for a success.
    """

    sketch: str
    latency_s: float | None
    error: str | None = None


@dataclass(frozen=True)
class TimedProgram:
    """A program with its fastest measurement.

    Attributes:
        latency_s: seconds of one run.
        time_s: when it was measured, in seconds since 1970.
    """

    program: Program
    latency_s: float
    time_s: float


@dataclass(frozen=True)
class Trials:
    """All measurements of a task on a target.

    Attributes:
        each: oldest first.
        fastest: the fastest distinct programs, fastest first.
        hosts: names of the machines that measured, the most frequent first.
    """

    each: tuple[Trial, ...] = ()
    fastest: tuple[TimedProgram, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[int, float] | None:
        """Number and seconds of the fastest trial; None without a success."""
        times = [(t.latency_s, n) for n, t in enumerate(self.each, 1) if t.latency_s is not None]
        return (min(times)[1], min(times)[0]) if times else None

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed trials by the kind of the error."""
        return dict(Counter(t.error for t in self.each if t.error is not None))

    def gain_of_last(self, count: int) -> float | None:
        """The share of its time that the best program lost in the last `count` trials; None if no
        trial before them succeeded."""
        known = [t.latency_s for t in self.each[: len(self.each) - count]]
        earlier_s = min((s for s in known if s is not None), default=None)
        if earlier_s is None or self.best is None:
            return None
        return 1 - self.best[1] / earlier_s


def trials_of(records: Sequence[Record], config: ExplainConfig = EXPLAIN) -> Trials:
    """The trials of one task.

    A program with a wrong result in any trial counts as failed in all of them.

    Args:
        records: of one task on one target, oldest first.
        config: number of programs that are kept.
    """
    kind = ErrorKind.WRONG
    wrong = {_identity(r.program) for r in records if r.measurement.error is kind}
    each, timed = [], []
    for record in records:
        program, error, latency_s = record.program, record.measurement.error, record.latency_s
        if error is None and _identity(program) in wrong:
            error, latency_s = kind, None
        each.append(Trial(program.sketch, latency_s, None if error is None else error.value))
        if latency_s is not None:
            timed.append(TimedProgram(program, latency_s, record.origin.time_s))
    hosts = Counter(record.origin.host for record in records)
    ordered = tuple(host for host, _ in hosts.most_common())
    return Trials(tuple(each), _fastest(timed, config.fastest), ordered)


def _fastest(timed: Sequence[TimedProgram], most: int) -> tuple[TimedProgram, ...]:
    """The fastest measurement of each of the fastest distinct programs."""
    found = dict[object, TimedProgram]()
    for one in sorted(timed, key=lambda one: one.latency_s):
        found.setdefault(_identity(one.program), one)
    return tuple(found.values())[:most]


def _identity(program: Program) -> object:
    """Equal for equal programs: the name of a sketch stands for its steps."""
    return program.sketch, tuple(sorted(program.values.items()))
