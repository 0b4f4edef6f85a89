"""A program that the search considers, with its score and, later, its latency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ansor.program.decision import IntArray
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch


@dataclass(frozen=True, eq=False)
class Candidate:
    """One row of a sketch.

    `score` is the expected log-throughput. Equal programs have the same `signature`, even if their
    choices differ. `latency_s` is None until a measurement succeeds.
    """

    sketch: Sketch
    row: IntArray
    score: float
    signature: bytes
    latency_s: float | None = None

    @property
    def program(self) -> Program:
        """The program, to be lowered or stored."""
        return Population(self.sketch, self.row[None]).program(0)

    def measured(self, latency_s: float | None) -> Candidate:
        """The candidate with a latency in seconds."""
        return replace(self, latency_s=latency_s)


def distinct(candidates: Iterable[Candidate], seen: Mapping[bytes, object]) -> list[Candidate]:
    """The candidates in order, without those in `seen` and without repetitions."""
    kept: dict[bytes, Candidate] = {}
    for candidate in candidates:
        if candidate.signature not in seen:
            kept.setdefault(candidate.signature, candidate)
    return list(kept.values())


def best_of(candidates: Iterable[Candidate]) -> Candidate | None:
    """The fastest of the measured candidates."""
    return min(
        candidates, key=lambda c: np.inf if c.latency_s is None else c.latency_s, default=None
    )
