"""Cases in child processes: a crash or a hang costs one case, not the suite."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from tests.suites.outcome import Outcome

Run = Callable[[str], Outcome]


def run_in_children(run: Run, names: Sequence[str], limit_s: float) -> Iterator[Outcome]:
    """The outcome of each case, in order.

    A child runs one case after the other; where it dies, or takes longer than `limit_s`, the case
    is `crashed` and another child goes on.
    """
    child: _Child | None = None
    for name in names:
        child = child or _Child(run)
        outcome = child.outcome(name, limit_s)
        if outcome is None:
            detail = child.end()
            child = None
            yield Outcome(name, "crashed", detail)
        else:
            yield outcome
    if child:
        child.end()


def print_outcomes(run: Run, names: Sequence[str], limit_s: float) -> None:
    """Runs cases and prints each verdict and how many there are of each."""
    counts: Counter[str] = Counter()
    for outcome in run_in_children(run, names, limit_s):
        counts[outcome.verdict] += 1
        print(f"{outcome.verdict:8s} {outcome.case}  {outcome.detail}", flush=True)
    print(dict(counts))


class _Child:
    """A process that runs cases as their names come."""

    def __init__(self, run: Run) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(run, there), daemon=True)
        self._process.start()
        there.close()

    def outcome(self, name: str, limit_s: float) -> Outcome | None:
        """None if the child died or takes too long."""
        try:
            self._here.send(name)
            return self._here.recv() if self._here.poll(limit_s) else None
        except (EOFError, ConnectionError):
            return None

    def end(self) -> str:
        """Ends the child; how it ended."""
        self._process.join(1)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
            return "no end within the limit"
        return f"the process died: exit status {code}"


def _serve(run: Run, pipe: Connection[Any, Any]) -> None:
    while True:
        try:
            name = pipe.recv()
        except EOFError:  # the parent is done
            return
        pipe.send(run(name))
