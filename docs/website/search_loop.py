"""The search loop, drawn from the calls of one run through the public seams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import ansor
from ansor.callbacks import Callback, Round
from ansor.config import QUICK
from ansor.measure.fake import FakeDevice
from ansor.policy.policy import SearchPolicy
from docs.website.example import workload
from docs.website.svg import BLUE, GREEN, ORANGE, Drawing

TRIALS = 32
_PLACES = {  # call: column, row, what it does
    "propose": (0, 0, "Policy.propose", "sample, evolve, score", BLUE),
    "measure": (1, 0, "Device.measure", "build, time", GREEN),
    "append": (1, 1, "RecordStore.append", "keep the records", ORANGE),
    "learn": (0, 1, "Policy.learn", "best programs, cost model", BLUE),
    "on_round": (0, 2, "Callback.on_round", "progress", ORANGE),
}
_WIDTH, _COLUMN, _ROW, _HEIGHT = 190.0, 330.0, 96.0, 41.0  # pixels


def calls() -> list[str]:
    """The names of the calls of one run, in order; a call that repeats at once counts once."""
    made: list[str] = []

    class Policy(SearchPolicy):
        def propose(self, count: int) -> Any:
            made.append("propose")
            return super().propose(count)

        def learn(self, candidates: Any, latency_s: Any) -> None:
            if candidates:
                made.append("learn")
            super().learn(candidates, latency_s)

    class Device(FakeDevice):
        def measure(self, *arguments: Any, **more: Any) -> Any:
            made.append("measure")
            return super().measure(*arguments, **more)

    class Store:
        def load(self) -> tuple[Sequence[Any], Sequence[Any]]:
            return (), ()

        def append(self, tasks: Sequence[Any], records: Sequence[Any]) -> None:
            if records:
                made.append("append")

        def close(self) -> None:
            pass

    class Told(Callback):
        def on_round(self, done: Round) -> None:
            made.append("on_round")

    ansor.tune(
        list(workload().tensors),
        trials=TRIALS,
        config=QUICK,
        policy=Policy,
        device=Device(lambda task, program: 1e-3),
        database=Store(),
        callbacks=[Told()],
        threads=1,
    )
    return [call for before, call in pairwise(["", *made]) if call != before]


def draw() -> str:
    """The drawing. An arrow has the number of times that one call followed the other."""
    drawing = Drawing(_COLUMN + _WIDTH + 40, 2 * _ROW + _HEIGHT + 50)
    drawing.text(
        20, 22, f"calls of a run with {TRIALS} trials in batches of {QUICK.evolution.batch}"
    )
    for column, row, name, work, fill in _PLACES.values():
        drawing.box(20 + column * _COLUMN, 40 + row * _ROW, _WIDTH, [name, work], fill)
    for (before, after), count in sorted(Counter(pairwise(calls())).items()):
        _arrow(drawing, _PLACES[before][:2], _PLACES[after][:2], f"{count} ×")
    return drawing.to_text()


def _arrow(drawing: Drawing, begin: tuple[int, int], end: tuple[int, int], text: str) -> None:
    (x0, y0), (x1, y1) = begin, end
    left, top = 20 + x0 * _COLUMN, 40 + y0 * _ROW
    to_left, to_top = 20 + x1 * _COLUMN, 40 + y1 * _ROW
    if x0 == x1 and abs(y1 - y0) == 1:
        down = y1 > y0
        x = left + _WIDTH / 2
        ends = (top + _HEIGHT, to_top) if down else (top, to_top + _HEIGHT)
        drawing.arrow([(x, ends[0]), (x, ends[1])])
        drawing.text(x + 8, sum(ends) / 2 + 4, text)
    elif x0 == x1:
        x = left - 12
        middle = (top + _HEIGHT / 2, to_top + _HEIGHT / 2)
        drawing.arrow([(left, middle[0]), (x, middle[0]), (x, middle[1]), (left, middle[1])])
        drawing.text(x + 4, to_top + _HEIGHT + 16, text)
    else:
        xs = (left + _WIDTH, to_left) if x1 > x0 else (left, to_left + _WIDTH)
        drawing.arrow([(xs[0], top + _HEIGHT / 2), (xs[1], to_top + _HEIGHT / 2)])
        drawing.text(sum(xs) / 2, (top + to_top + _HEIGHT) / 2 - 6, text, "middle")
