"""Systems that take short turns, each in its own running process: both ends.

A shared machine changes its speed within seconds. With shorter turns, all systems meet the same
speeds. Ratios are taken within a round.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from ansor.closing import Closing
from ansor.compare.system_process import Child, ChildError
from ansor.config import COMPARE

LATENCY = "latency_s"  # in the answer of a turn: median seconds of a run
_READY, _TIME = "ready", "time"

Answer = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The answers of systems.

    Attributes:
        answers: of each system that ran, by round and turn; a slow one stops early in each round.
        told: notes of each of them.
        missing: reasons why others did not run to the end.
    """

    answers: dict[str, list[list[Answer]]]
    told: dict[str, Answer]
    missing: dict[str, str]

    def latencies_s(self, name: str) -> tuple[tuple[float, ...], ...]:
        """Latencies of a system that ran, by round and turn."""
        return tuple(tuple(each[LATENCY] for each in turns) for turns in self.answers[name])


def take_turns(
    start: Callable[[str], Child],
    names: Sequence[str],
    rounds: int,
    turn_s: float,
    tell: Callable[[str], None] = lambda _: None,
    before: Callable[[], None] = lambda: None,
) -> Outcome:
    """Times systems in turns.

    Args:
        start: the process of a system.
        names: the systems; after a failure, a system is left out.
        rounds: number of starts of each process, because the addresses of its memory affect its
            times.
        turn_s: seconds that a turn should take.
        tell: receives lines of progress.
        before: called before each turn of all.
    """
    outcome = Outcome({name: [] for name in names}, {}, {})
    for number in range(rounds):
        with _Round(start, turn_s, outcome) as running:
            tell(f"round {number + 1} of {rounds}: {', '.join(outcome.answers)}")
            for name in tuple(outcome.answers):
                running.load(name)
            for turn in range(COMPARE.turns):
                before()
                running.take(backwards=turn % 2 == 1)
    return outcome


def ratio(numerator: Sequence[Sequence[float]], denominator: Sequence[Sequence[float]]) -> float:
    """Median of the ratios within a turn; both by round and turn."""
    rounds = zip(numerator, denominator, strict=False)
    pairs = (pair for turns in rounds for pair in zip(*turns, strict=False))  # slow ones stop early
    return statistics.median(above / below for above, below in pairs)


def answer_turns(load: Callable[[], tuple[Answer, Callable[[], Answer]]]) -> None:
    """The side of the process: answers every line of standard input, until it is closed.

    Args:
        load: makes a system ready; returns its description and the function that times a turn.
    """
    with _answers() as answers:
        told, turn = load()
        for line in sys.stdin:
            answer = turn() if line.strip() == _TIME else told
            print(json.dumps(answer), file=answers, flush=True)


def _answers() -> TextIO:
    """The original standard output; other output is redirected to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


class _Round(Closing):
    """The parent's side: processes, and their turns."""

    def __init__(self, start: Callable[[str], Child], turn_s: float, outcome: Outcome) -> None:
        self._start, self._turn_s, self._outcome = start, turn_s, outcome
        self._children: dict[str, Child] = {}

    def load(self, name: str) -> None:
        """Starts a system and waits until it is ready."""
        try:
            self._children[name] = self._start(name)
            self._outcome.told[name] = self._children[name].ask(_READY)
        except ChildError as error:
            self._leave_out(name, error)
        else:
            self._outcome.answers[name].append([])

    def take(self, backwards: bool) -> None:
        """Times each system once, in changing order, so that neighbours change."""
        names = [name for name in self._outcome.answers if not self._is_settled(name)]
        for name in reversed(names) if backwards else names:
            try:
                self._outcome.answers[name][-1].append(self._children[name].ask(_TIME))
            except ChildError as error:
                self._leave_out(name, error)

    def _is_settled(self, name: str) -> bool:
        """Whether its turns are enough: a run longer than a turn is an average itself."""
        turns = self._outcome.answers[name][-1]
        return len(turns) >= COMPARE.slow_turns and turns[0][LATENCY] > self._turn_s

    def _leave_out(self, name: str, error: ChildError) -> None:
        self._outcome.missing[name] = str(error)
        del self._outcome.answers[name]

    def close(self) -> None:
        for child in self._children.values():
            child.close()
