"""Best latencies during a search, from its trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ansor.report.document.document import CurvePoint, FailureCount, Prediction
from ansor.report.document.search_data import Trial

Functions = Mapping[str, str]  # the function of each task, by the key of the task


def function_curves(
    trials: Sequence[Trial], functions: Functions
) -> dict[str, tuple[CurvePoint, ...]]:
    """The improvements of each function, and its last trial.

    Args:
        trials: in the order of their measurement.
        functions: of the network.
    """
    curves: dict[str, list[CurvePoint]] = defaultdict(list)
    counts, last = Counter[str](), dict[str, float]()
    for trial in trials:
        name = functions[trial.task]
        counts[name] += 1
        last[name] = trial.elapsed_s
        best_s = curves[name][-1].best_s if curves[name] else None
        if trial.latency_s is not None and (best_s is None or trial.latency_s < best_s):
            curves[name].append(CurvePoint(counts[name], trial.elapsed_s, trial.latency_s))
    for name, points in curves.items():
        if points and points[-1].trials < counts[name]:
            points.append(CurvePoint(counts[name], last[name], points[-1].best_s))
    return {name: tuple(points) for name, points in curves.items() if points}


def network_curve(
    trials: Sequence[Trial],
    functions: Functions,
    calls: Mapping[str, int],
    known_s: Mapping[str, float],
) -> tuple[CurvePoint, ...]:
    """The sum of the functions' best latencies, from the trial on after which each has one.

    Args:
        trials: in the order of their measurement.
        functions: of the network.
        calls: of each function per run of the network.
        known_s: seconds of the functions without a successful trial.
    """
    measured = {functions[trial.task] for trial in trials if trial.latency_s is not None}
    best_s = {name: known_s[name] for name in calls if name not in measured and name in known_s}
    points: list[CurvePoint] = []
    for count, trial in enumerate(trials, start=1):
        name = functions[trial.task]
        if name in calls and trial.latency_s is not None:
            best_s[name] = min(trial.latency_s, best_s.get(name, trial.latency_s))
        if best_s.keys() < calls.keys():
            continue
        total_s = sum(calls[name] * best_s[name] for name in calls)
        if not points or total_s < points[-1].best_s or count == len(trials):
            points.append(CurvePoint(count, trial.elapsed_s, total_s))
    return tuple(points)


def predictions(trials: Sequence[Trial], functions: Functions) -> tuple[Prediction, ...]:
    """Expected and measured seconds of the programs that have both."""
    return tuple(
        Prediction(functions[trial.task], trial.expected_s, trial.latency_s)
        for trial in trials
        if trial.expected_s and trial.latency_s
    )


def ordered_share(pairs: Sequence[Prediction]) -> float | None:
    """The share of the pairs of programs of one function whose order was expected.

    Pairs with equal expected or equal measured times do not count. None without a pair.
    """
    right = total = 0
    for name in {each.function for each in pairs}:
        own = [each for each in pairs if each.function == name]
        expected = np.array([each.expected_s for each in own])
        measured = np.array([each.measured_s for each in own])
        signs = np.sign(expected[:, None] - expected) * np.sign(measured[:, None] - measured)
        right += int((signs > 0).sum())
        total += int((signs != 0).sum())
    return right / total if total else None


def failure_counts(trials: Sequence[Trial], functions: Functions) -> tuple[FailureCount, ...]:
    """Failures by function and kind, the most frequent first, with the text of the first one."""
    counts, messages = Counter[tuple[str, str]](), dict[tuple[str, str], str]()
    for trial in trials:
        if trial.error is not None:
            kind = (functions[trial.task], trial.error)
            counts[kind] += 1
            messages.setdefault(kind, trial.message)
    return tuple(
        FailureCount(name, kind, count, messages[name, kind])
        for (name, kind), count in counts.most_common()
    )
