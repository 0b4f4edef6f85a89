"""The results of a comparison: latencies, their ratios, and errors."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from ansor.compare.case import REFERENCE, Case
from ansor.compare.systems import OWN, PRECISION
from ansor.compare.turns import Answer, ratio
from ansor.run.check.deviation import deviation, squared_error

_REFERENCES = ("torch", "untuned")  # references of the others' outputs, if they ran


@dataclass(frozen=True)
class SystemResult:
    """One system's latencies and error.

    Attributes:
        system: its name.
        samples_s: median seconds of a run, by round and turn.
        difference: the largest absolute difference from the reference's output, relative to the
            largest absolute value of that output.
        squared_error: squares of the differences over squares of the reference's values, both
            added up: the normalised mean squared error.
        cosine: of the angle between the output and that of the reference.
        precision: that it computed in.
    """

    system: str
    samples_s: tuple[tuple[float, ...], ...]
    difference: float
    squared_error: float = 0.0
    cosine: float = 1.0
    precision: str = "float32"

    @property
    def latency_s(self) -> float:
        """Median over all turns."""
        return statistics.median(chain.from_iterable(self.samples_s))

    @property
    def rounds_s(self) -> list[float]:
        """Median of each round."""
        return [statistics.median(turns) for turns in self.samples_s]


@dataclass(frozen=True)
class Comparison:
    """All systems that ran, in order, and the reasons why others did not."""

    results: tuple[SystemResult, ...]
    reference: str
    missing: dict[str, str] = field(default_factory=dict)
    precision: str = "float32"

    def to_own(self, result: SystemResult) -> float | None:
        """A system's latency over that of our tuned network: median of the ratios in a turn."""
        own = next((each for each in self.results if each.system == OWN[0]), None)
        return None if own is None else ratio(result.samples_s, own.samples_s)


def judge(
    case: Case,
    samples_s: Mapping[str, tuple[tuple[float, ...], ...]],
    missing: dict[str, str],
    told: Mapping[str, Answer],
) -> Comparison:
    """Combines latencies and outputs.

    Args:
        case: whose folder holds every system's output.
        samples_s: latencies of each system that ran, by round and turn.
        missing: reasons why others did not.
        told: notes of each system.
    """
    outputs = {name: np.load(case.output(name)) for name in samples_s}
    if case.is_low:
        reference, expected = f"{_REFERENCES[0]} in float32", np.load(case.output(REFERENCE))
    else:
        reference = next((name for name in _REFERENCES if name in outputs), OWN[0])
        expected = outputs[reference]
    results = []
    for name, times in samples_s.items():
        found = deviation([expected], [outputs[name]], squared_error)
        errors = found.largest, found.squared, found.cosine
        precision = told[name].get(PRECISION, case.precision)
        results.append(SystemResult(name, times, *errors, precision))
    return Comparison(tuple(results), reference, missing, case.precision)
