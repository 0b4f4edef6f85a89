"""Fits a surrogate to the records of an operator, and judges it on held-out programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ansor.config import FULL, MeasureConfig
from ansor.database.record import Record
from ansor.measure.result import ErrorKind
from ansor.program.sketch import Population, Sketch
from ansor.task import Task
from benchmarks.ranking import best_of_top, spearman
from benchmarks.surrogate_inputs import Floats, Inputs, aligned, inputs_of, varying
from benchmarks.surrogate_model import LIKELY, Quality, Surrogate, SurrogateError, Times
from benchmarks.surrogate_trees import Trees, TreesConfig

_HELD_OUT = 0.2  # of the programs
_FAST = 0.25  # of the held-out programs: those that a search has to tell apart
_FAVOURITES = 10
_LEAST = 32  # programs of a fit
_LEAST_BUILD_S = 1e-3  # no build is faster; its logarithm is learned
_LEAST_FAILURES = 8  # from which failures are predicted

LATENCY = TreesConfig()
BUILD = TreesConfig(rounds=60, max_depth=4, learning_rate=0.2)
FAILURE = TreesConfig(rounds=60, max_depth=4, learning_rate=0.2, objective="binary:logistic")


@dataclass(frozen=True, eq=False)
class Sample:
    """Measured programs of one operator.

    Attributes:
        columns: names of the inputs.
        inputs: `[P, C] float32`.
        latency_s: `[P]` seconds, not a number where a program failed.
        build_s: `[P]` seconds.
        run_s: `[P]` seconds of all timed runs.
        errors: kinds of the failures.
    """

    columns: tuple[str, ...]
    inputs: Floats
    latency_s: Times
    build_s: Times
    run_s: Times
    errors: Counter[ErrorKind]

    @property
    def ran(self) -> npt.NDArray[np.bool_]:
        """`[P]`: the programs that did not fail."""
        ran: npt.NDArray[np.bool_] = np.isfinite(self.latency_s)
        return ran


def sample_of(sketches: Sequence[Sketch], records: Sequence[Record]) -> Sample:
    """The records whose sketch still exists, sketch by sketch."""
    parts: list[Inputs] = []
    kept: list[Record] = []
    for sketch in sketches:
        rows = {i: sketch.row_of(r.program) for i, r in enumerate(records)}
        known = {i: row for i, row in rows.items() if row is not None}
        if known:
            parts.append(inputs_of(Population(sketch, np.stack(list(known.values())))))
            kept += [records[i] for i in known]
    columns = varying(parts) if parts else ()
    return Sample(
        columns,
        np.concatenate(
            [np.empty((0, len(columns)), np.float32), *(aligned(p, columns) for p in parts)]
        ),
        np.asarray([np.nan if r.latency_s is None else r.latency_s for r in kept]),
        np.asarray([r.measurement.build_s for r in kept]),
        np.asarray([r.measurement.run_s for r in kept]),
        Counter(r.measurement.error for r in kept if r.measurement.error is not None),
    )


def fitted(
    op: str,
    task: Task,
    sample: Sample,
    about: Mapping[str, Any],
    timeout_s: float = FULL.measure.run_timeout_s,
) -> Surrogate:
    """A surrogate of all programs of a sample.

    Args:
        about: environment of the measurements.
        timeout_s: of a program that runs too long.

    Raises:
        SurrogateError: there are too few programs.
    """
    ran = sample.ran
    if ran.sum() < _LEAST:
        raise SurrogateError(f"{op}: {ran.sum()} programs ran, at least {_LEAST} are needed")
    every = np.ones(len(ran), dtype=np.bool_)
    kind = sample.errors.most_common(1)
    return Surrogate(
        op=op,
        key=task.key,
        target=task.target,
        about=about,
        columns=sample.columns,
        latency=_latency(sample, every),
        build=Trees.fitted(
            sample.inputs[ran], np.log(np.maximum(sample.build_s[ran], _LEAST_BUILD_S)), BUILD
        ),
        failure=_failure(sample, every),
        failure_kind=kind[0][0] if kind else ErrorKind.RUN,
        overhead_s=_overhead_s(sample),
        timeout_s=timeout_s,
        quality=quality(sample),
    )


def _latency(sample: Sample, of: npt.NDArray[np.bool_]) -> Trees:
    """Trees for the logarithm of the latency; the faster a program, the more it counts."""
    chosen = of & sample.ran
    latency_s = sample.latency_s[chosen]
    weight = np.sqrt(latency_s.min() / latency_s)
    return Trees.fitted(sample.inputs[chosen], np.log(latency_s), LATENCY, weight)


def _failure(sample: Sample, of: npt.NDArray[np.bool_]) -> Trees | None:
    failed = ~sample.ran[of]
    if failed.sum() < _LEAST_FAILURES:
        return None
    return Trees.fitted(sample.inputs[of], failed.astype(np.float32), FAILURE)


def _overhead_s(sample: Sample) -> float:
    """Median seconds of a measurement beside its runs."""
    ran = sample.ran
    runs = [runs_s(float(t), None, FULL.measure) for t in sample.latency_s[ran]]
    return float(max(0.0, np.median(sample.run_s[ran] - runs)))


def runs_s(latency_s: float, best_s: float | None, config: MeasureConfig) -> float:
    """Seconds of all runs of a measurement (`ansor.measure.child.timing.time_program`).

    Args:
        latency_s: of the program.
        best_s: of the fastest program so far.
    """
    limit = np.inf if best_s is None else best_s
    if latency_s > min(config.once_s, limit * config.abort_factor):
        return latency_s
    is_once = latency_s > min(config.long_run_s, limit * config.repeat_factor)
    repeats = 1 if is_once else config.repeats
    number = min(config.max_number, max(1, round(config.min_time_s / config.repeats / latency_s)))
    return latency_s * (1 + repeats * number)


def quality(sample: Sample, seed: int = 0) -> Quality:
    """Figures of trees that were fitted to a random part of the programs."""
    out = np.random.default_rng(seed).random(len(sample.inputs)) < _HELD_OUT
    rest = out & sample.ran
    predicted = np.exp(_latency(sample, ~out).predict(sample.inputs[rest]))
    actual = sample.latency_s[rest]
    error = np.abs(predicted / actual - 1)
    fast = actual <= np.quantile(actual, _FAST)
    failure = _failure(sample, ~out)
    likely = np.zeros(len(out)) if failure is None else failure.predict(sample.inputs)
    failed = out & ~sample.ran
    return Quality(
        programs=int(sample.ran.sum()),
        failures=int((~sample.ran).sum()),
        held_out=int(rest.sum()),
        spearman=spearman(-predicted, actual),
        spearman_fast=spearman(-predicted[fast], actual[fast]),
        error=float(np.median(error)),
        error_fast=float(np.median(error[fast])),
        best_of_10=best_of_top(-predicted, actual, _FAVOURITES),
        failures_predicted=float((likely[failed] > LIKELY).mean()) if failed.any() else None,
        false_failures=float((likely[rest] > LIKELY).mean()),
    )
