"""The draft agrees with the measured programs of the repository, and the fit finds constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ansor.targets.cpu.draft.constants import DEFAULTS
from benchmarks.draft_data import FOLDER, read
from benchmarks.draft_fitting import (
    Case,
    Evaluator,
    cases_of,
    changed,
    effect,
    fit,
    folds,
    neutral_values,
    score,
    values_of,
)

ZEN4 = FOLDER / "zen4.json.xz"
FLOORS = {"GMM.1": 0.8, "C2D.0": 0.8, "SFM.1": 0.8}  # of Spearman's correlation
FEW = 24  # programs of a definition, for the fits
GRID = (0.5, 0.7, 1.4, 2.0)


@cache
def measured(most: int | None = None) -> list[Case]:
    """The cases of three definitions."""
    return cases_of(read(ZEN4, names=list(FLOORS)), most)


def made_up(values: Mapping[str, float]) -> list[Case]:
    """Cases whose times are the drafts with other constants."""
    constants = changed(DEFAULTS, values)
    return [replace(case, latency_s=case.drafted(constants)) for case in measured(FEW)]


@pytest.mark.parametrize("name", FLOORS)
def test_the_draft_ranks_measured_programs(name: str) -> None:
    (case,) = (case for case in measured() if case.name == name)
    found = score(case.drafted(DEFAULTS), case.latency_s)
    assert found.spearman > FLOORS[name]


@pytest.mark.parametrize("name", ["traffic_share", "idle_set_share", "jump_bytes"])
def test_the_fit_recovers_a_constant(name: str) -> None:
    neutral = neutral_values(DEFAULTS)[name]
    value = neutral + 2 * (values_of(DEFAULTS)[name] - neutral)
    cases = made_up({name: value})
    evaluator, every = Evaluator(cases), range(len(cases))
    found = fit(evaluator, every, DEFAULTS, ["core_share", name], GRID)
    assert values_of(found)[name] == pytest.approx(value, rel=0.05)
    assert evaluator.loss(found, every) < evaluator.loss(DEFAULTS, every)


def test_constants_at_the_best_values_stay() -> None:
    cases = made_up({})
    every = range(len(cases))
    assert fit(Evaluator(cases), every, DEFAULTS, ["traffic_share"], GRID) == DEFAULTS


def test_a_constant_leaves_its_neutral_value() -> None:
    cases = made_up({})
    start = changed(DEFAULTS, {"traffic_share": 0.0})
    found = fit(Evaluator(cases), range(len(cases)), start, ["traffic_share"])
    expected = values_of(DEFAULTS)["traffic_share"]
    assert values_of(found)["traffic_share"] == pytest.approx(expected, rel=0.05)


def test_leaving_out_a_useful_constant_costs_something() -> None:
    planted = changed(DEFAULTS, {"traffic_share": 0.6})
    cases = made_up({"traffic_share": 0.6})
    found = effect(Evaluator(cases), [(planted, range(len(cases)))], "traffic_share")
    assert found.exercised == len(cases)
    assert found.loss > 0.01
    assert found.mean_spearman < -0.001
    assert found.worst_spearman < -0.001


def test_leaving_out_a_constant_without_use_costs_nothing() -> None:
    """No loop of these operators has a condition that skips steps."""
    cases = made_up({})
    found = effect(
        Evaluator(cases), [(DEFAULTS, range(len(cases)))], "accumulator_spills_per_check"
    )
    assert (found.exercised, found.loss, found.best_of_5) == (0, 0, 1)


def test_a_score_is_of_order_and_of_proportion() -> None:
    times = np.asarray([1.0, 2.0, 4.0, 8.0])
    same = score(3 * times, times)
    assert (same.spearman, same.best_of_5, same.spread, same.loss) == (1, 1, 0, 0)
    flat = score(np.sqrt(times), times)
    assert flat.spearman == 1
    assert flat.spread == pytest.approx(np.log(2) / 2)
    assert score(times[::-1], times).spearman == -1


def test_the_five_best_drafts_count() -> None:
    times = np.arange(1.0, 9.0)
    assert score(times[::-1], times).best_of_5 == 4


def test_a_definition_is_in_one_part() -> None:
    """Also with several processors."""
    cases = [*measured(FEW), *(replace(case, kind="other") for case in measured(FEW))]
    parts = folds(cases, 2)
    assert sorted(number for part in parts for number in part) == list(range(len(cases)))
    names = [{cases[number].name for number in part} for part in parts]
    assert names[0].isdisjoint(names[1])


def test_an_unknown_constant_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        changed(DEFAULTS, {"colour": 1.0})


def test_each_neutral_value_differs_from_the_value() -> None:
    values = values_of(DEFAULTS)
    assert all(values[name] != neutral for name, neutral in neutral_values(DEFAULTS).items())
