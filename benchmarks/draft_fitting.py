"""The fit of the draft's constants on measured programs, and the effect of each constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ansor.cost_model.scorer import seconds
from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.targets.cpu.draft.constants import DEFAULTS, DraftConstants
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.machine import Hardware
from benchmarks.draft_data import MeasuredSketch, Measurements
from benchmarks.ranking import best_of_top, spearman

Times = npt.NDArray[np.float64]

_GROUPS = ("core", "compiler", "overlap")
FACTORS = (0.0, 0.5, 0.7, 1.4, 2.0)  # on a constant's distance from its neutral value
FEW_FACTORS = (0.5, 2.0)
_LEAST_GAIN = 1e-4  # of the loss, below which a step is noise


@dataclass(frozen=True, eq=False)
class Case:
    """The measured programs of one definition on one processor.

    Attributes:
        name: of the definition.
        kind: of the processor.
        hardware: its parameters.
        sketches: profiles of the programs, sketch by sketch.
        latency_s: `[P]`: measured seconds of all programs.
    """

    name: str
    kind: str
    hardware: Hardware
    sketches: Sequence[dict[str, StageProfile]]
    latency_s: Times

    def drafted(self, constants: DraftConstants) -> Times:
        """`[P]`: seconds by the draft."""
        parts = [seconds(draft(p, self.hardware, constants)) for p in self.sketches]
        return np.concatenate(parts).astype(np.float64)


@dataclass(frozen=True)
class Score:
    """How well the draft agrees with the measurements of a case.

    Attributes:
        spearman: rank correlation of draft and time.
        best_of_5: fastest of the five best drafts, over the fastest of all programs.
        spread: mean absolute deviation of log(time / draft) from its median.
    """

    spearman: float
    best_of_5: float
    spread: float

    @property
    def loss(self) -> float:
        """The loss of the fit.

        The search needs the order of programs, so the rank correlation counts. It is blind to the
        size of an error, and it changes in jumps. The spread is smooth, and it keeps the parts of
        the draft in proportion. The absolute deviation limits the weight of single programs, whose
        times differ from the draft by up to 15 times.
        """
        return 1 - self.spearman + self.spread


@dataclass(frozen=True)
class Summary:
    """Scores of several cases: medians, means and geometric means."""

    median_spearman: float
    mean_spearman: float
    best_of_5: float
    loss: float


@dataclass(frozen=True)
class Effect:
    """What leaving out a constant changes on definitions outside the fit.

    Attributes:
        exercised: number of cases whose drafts the constant changes.
        median_spearman, mean_spearman: change of the median and of the mean.
        best_of_5: factor on the geometric mean; above 1 if the constant is useful.
        loss: change of the mean.
        worst: the case with the largest fall of Spearman's correlation.
        worst_spearman: that change.
    """

    exercised: int
    median_spearman: float
    mean_spearman: float
    best_of_5: float
    loss: float
    worst: str
    worst_spearman: float


def neutral_values(constants: DraftConstants) -> dict[str, float]:
    """The neutral value of each constant that the fit may change."""
    return {
        field.name: float(field.metadata["neutral"])
        for group in _GROUPS
        for field in dataclasses.fields(getattr(constants, group))
        if "neutral" in field.metadata
    }


def values_of(constants: DraftConstants) -> dict[str, float]:
    """The value of each constant."""
    parts = (dataclasses.asdict(getattr(constants, group)) for group in _GROUPS)
    return {name: value for part in parts for name, value in part.items()}


def changed(constants: DraftConstants, values: Mapping[str, float]) -> DraftConstants:
    """The constants with other values.

    Raises:
        KeyError: there is no constant of a name.
    """
    unknown = values.keys() - values_of(constants).keys()
    if unknown:
        raise KeyError(*sorted(unknown))
    groups = {}
    for group in _GROUPS:
        own = getattr(constants, group)
        mine = {f.name: values[f.name] for f in dataclasses.fields(own) if f.name in values}
        groups[group] = replace(own, **mine)
    return replace(constants, **groups)


def cases_of(measurements: Measurements, most: int | None = None) -> list[Case]:
    """The cases of one processor, with profiles; of each definition about `most` programs."""
    return [
        _case(name, measurements, parts, most) for name, parts in measurements.definitions.items()
    ]


def _case(
    name: str, measurements: Measurements, parts: Sequence[MeasuredSketch], most: int | None
) -> Case:
    total = sum(len(part.latency_s) for part in parts)
    step = 1 if most is None else max(total // most, 1)
    rows = [np.arange(len(part.latency_s))[::step] for part in parts]
    taken = [part.population.take(own) for part, own in zip(parts, rows, strict=True)]
    latency_s = [part.latency_s[own] for part, own in zip(parts, rows, strict=True)]
    profiles = [profile(build_nest(population)) for population in taken]
    hardware = measurements.hardware
    return Case(name, measurements.kind, hardware, profiles, np.concatenate(latency_s))


def score(drafted: Times, latency_s: Times) -> Score:
    """Compares drafts with times."""
    ratio = np.log(latency_s / drafted)
    spread = float(np.abs(ratio - np.median(ratio)).mean())
    return Score(spearman(-drafted, latency_s), best_of_top(-drafted, latency_s, 5), spread)


class Evaluator:
    """Scores cases for constants, and remembers the scores."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = tuple(cases)
        self._scores: dict[tuple[int, DraftConstants], Score] = {}

    def scores(self, constants: DraftConstants, numbers: Iterable[int]) -> list[Score]:
        """The scores of some cases, by their numbers."""
        return [self._score(number, constants) for number in numbers]

    def _score(self, number: int, constants: DraftConstants) -> Score:
        key = (number, constants)
        if key not in self._scores:
            case = self.cases[number]
            self._scores[key] = score(case.drafted(constants), case.latency_s)
        return self._scores[key]

    def loss(self, constants: DraftConstants, numbers: Sequence[int]) -> float:
        """Mean loss of some cases."""
        return float(np.mean([one.loss for one in self.scores(constants, numbers)]))


def summary(scores: Sequence[Score]) -> Summary:
    """Combines the scores of several cases."""
    correlations = [one.spearman for one in scores]
    return Summary(
        float(np.median(correlations)),
        float(np.mean(correlations)),
        float(np.exp(np.mean(np.log([one.best_of_5 for one in scores])))),
        float(np.mean([one.loss for one in scores])),
    )


def fit(
    evaluator: Evaluator,
    numbers: Sequence[int],
    start: DraftConstants,
    names: Sequence[str],
    factors: Sequence[float] = FACTORS,
    passes: int = 2,
    progress: Callable[[str], None] = lambda _: None,
) -> DraftConstants:
    """Coordinate descent: each constant in turn takes the best value of a grid.

    The grid multiplies the distance of the constant from its neutral value, so a step is the same
    for a share near one and for a number of cycles.
    """
    best, loss = start, evaluator.loss(start, numbers)
    for number in range(passes):
        before = loss
        for name in names:
            for trial in _neighbours(best, name, factors):
                found = evaluator.loss(trial, numbers)
                if found < loss - _LEAST_GAIN:
                    best, loss = trial, found
        progress(f"pass {number + 1}: loss {before:.4f} to {loss:.4f}")
        if loss > before - _LEAST_GAIN:
            break
    return best


def _neighbours(
    constants: DraftConstants, name: str, factors: Sequence[float]
) -> list[DraftConstants]:
    """The constants with other values of one of them; none of them is negative."""
    value, neutral = values_of(constants)[name], neutral_values(constants)[name]
    if np.isfinite(neutral):
        distance = (value - neutral) or (values_of(DEFAULTS)[name] - neutral)
        tried = [neutral + factor * distance for factor in factors]
    else:
        tried = [value * factor for factor in factors if factor] + [neutral]
    return [changed(constants, {name: each}) for each in tried if each >= 0]


def folds(cases: Sequence[Case], count: int) -> list[list[int]]:
    """The numbers of the cases, in `count` parts. All cases of a definition are in one part."""
    names = sorted({case.name for case in cases})
    part = {name: position % count for position, name in enumerate(names)}
    return [[i for i, case in enumerate(cases) if part[case.name] == k] for k in range(count)]


def effect(
    evaluator: Evaluator, held_out: Sequence[tuple[DraftConstants, Sequence[int]]], name: str
) -> Effect:
    """What leaving out a constant changes.

    Args:
        held_out: constants, each with the numbers of cases that did not take part in their fit.
    """
    with_it, without, labels = [], [], []
    for constants, numbers in held_out:
        neutral = changed(constants, {name: neutral_values(constants)[name]})
        with_it += evaluator.scores(constants, numbers)
        without += evaluator.scores(neutral, numbers)
        labels += [f"{evaluator.cases[i].name} ({evaluator.cases[i].kind})" for i in numbers]
    before, after = summary(with_it), summary(without)
    falls = [b.spearman - a.spearman for a, b in zip(with_it, without, strict=True)]
    worst = int(np.argmin(falls))
    return Effect(
        sum(a != b for a, b in zip(with_it, without, strict=True)),
        after.median_spearman - before.median_spearman,
        after.mean_spearman - before.mean_spearman,
        after.best_of_5 / before.best_of_5,
        after.loss - before.loss,
        labels[worst],
        falls[worst],
    )
