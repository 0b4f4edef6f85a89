"""The mixture of two precisions that a network ends with, by the latencies of its functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm
from small_networks import TARGET, results, small_network

import ansor
from ansor.callbacks import Finish
from ansor.frontend.distinct_functions import tir_calls
from ansor.frontend.importers.from_relax import from_relax
from ansor.run.check.deviation import squared_error
from ansor.run.precision.assignment import Assignment, forms_of
from ansor.run.precision.minimum_cut import Costs
from ansor.run.precision.mixture import Mixture, costs_of, latencies, promises
from ansor.run.prepare import prepare_network
from ansor.run.search.budget import INTERRUPTED, NOTHING, Budget, together
from ansor.targets.cpu.low_precision import conversion_s
from ansor.targets.cpu.machine import Hardware

SHORT = "bfloat16"


def nothing(elements: int) -> float:
    """Seconds of conversions that cost nothing."""
    return 0.0


@cache
def mixture() -> Mixture:
    network = prepare_network(small_network(), TARGET, "llvm")
    forms = forms_of(network, SHORT)
    return Mixture.of(network, forms, Assignment(forms.multiplying), "llvm")


def searches(seconds: Mapping[str, float | None]) -> dict[str, list[Any]]:
    """Finished searches; functions that are not named take 1 µs in either form."""
    found: dict[str, list[Any]] = {}
    for task in mixture().both.tasks:
        search = SimpleNamespace(task=task, best_s=seconds.get(task.name, 1e-6), promised_s=5e-6)
        found.setdefault(task.group, []).append(search)
    return found


def products() -> list[str]:
    forms = mixture().forms
    return sorted({forms.function_of(call) for call in forms.multiplying})


def short_calls(mod: tvm.IRModule) -> list[bool]:
    return [SHORT in str(call.args[0].name_hint) for call in tir_calls(mod)]


def test_both_forms_of_a_function_are_variants_of_each_other() -> None:
    tasks = mixture().both.tasks
    short = [task for task in tasks if task.kind == SHORT]
    assert {task.group for task in short} <= {task.name for task in mixture().wide.tasks}
    assert len({task.key for task in tasks}) == len(tasks)
    assert len(short) >= len(products())


def test_what_is_faster_in_bfloat16_becomes_so() -> None:
    times = {f"{name}_{SHORT}": 0.5e-6 for name in products()}
    network = mixture().chosen(searches(times), nothing)
    assert all(row.short == row.calls for row in network.precision if row.reason)
    assert short_calls(network.mod) == short_calls(mixture().short.mod)


def test_what_is_slower_in_bfloat16_stays() -> None:
    times = {f"{name}_{SHORT}": 2e-6 for name in products()}
    network = mixture().chosen(searches(times), nothing)
    assert not any(row.short for row in network.precision)
    assert not any(short_calls(network.mod))


def test_one_product_alone_may_change() -> None:
    first, *others = products()
    times = {f"{first}_{SHORT}": 0.5e-6} | {f"{name}_{SHORT}": 2e-6 for name in others}
    network = mixture().chosen(searches(times), nothing)
    changed = {row.name for row in network.precision if row.short}
    assert changed == {first}
    reasons = {row.name: row.reason for row in network.precision}
    assert reasons[first] == "1.00 µs in float32, 0.500 µs in bfloat16"
    error = squared_error(results(mixture().wide.mod), results(network.mod))
    assert 0 < error < 1e-4


def test_conversions_may_cost_more_than_is_gained() -> None:
    first, *others = products()
    times = {f"{first}_{SHORT}": 0.9e-6} | {f"{name}_{SHORT}": 2e-6 for name in others}
    assert any(row.short for row in mixture().chosen(searches(times), nothing).precision)
    dear = mixture().chosen(searches(times), lambda elements: 1e-6)
    assert not any(row.short for row in dear.precision)


def test_what_failed_in_one_form_takes_the_other() -> None:
    times: dict[str, float | None] = {f"{name}_{SHORT}": None for name in products()}
    assert not any(row.short for row in mixture().chosen(searches(times), nothing).precision)


def test_latencies_and_promises_of_variants() -> None:
    def search(name: str, best_s: float | None, promised_s: float) -> Any:
        task = SimpleNamespace(name=name)
        return SimpleNamespace(task=task, best_s=best_s, promised_s=promised_s)

    found = {
        "f": [
            search("f", 3.0, 7.0),
            search("f_winograd", 2.0, 6.0),
            search("f_short", None, 5.0),
            search("f_short_winograd", 1.5, 4.0),
        ],
        "g": [search("g", None, 9.0), search("g_short", None, math.inf)],
    }
    short = {"f_short": "f_short", "f_short_winograd": "f_short", "g_short": "g_short"}
    measured = {"f": 2.0, "f_short": 1.5, "g": math.inf, "g_short": math.inf}
    assert latencies(found, short) == measured
    assert promises(found, short) == {"f": 6.0, "f_short": 4.0, "g": 9.0, "g_short": math.inf}


@pytest.mark.parametrize(
    ("seconds", "promised", "costs"),
    [
        ((2.0, math.inf), (1.0, 0.5), (2.0, math.inf)),
        ((math.inf, 3.0), (1.0, 0.5), (math.inf, 3.0)),
        ((math.inf, math.inf), (1.0, 0.5), (1.0, 0.5)),
        ((math.inf, math.inf), (math.inf, math.inf), (0.0, math.inf)),
    ],
)
def test_promises_count_where_neither_form_was_measured(
    seconds: tuple[float, float], promised: tuple[float, float], costs: tuple[float, float]
) -> None:
    names = ("wide", "short")
    by_name = (dict(zip(names, values, strict=True)) for values in (seconds, promised))
    assert costs_of(names, *by_name) == Costs(*costs)


def test_pure_networks_say_what_they_are() -> None:
    wide, short = mixture().pure
    assert not any(row.short for row in wide.precision)
    assert {row.reason for row in wide.precision} == {"", "float32 alone is faster"}
    assert all(row.short == row.calls for row in short.precision if row.reason)


def test_conversions_take_longer_the_more_there_is() -> None:
    machine = Hardware()
    assert 0 < conversion_s(machine, 1000) < conversion_s(machine, 2000) < 1e-6


@pytest.mark.parametrize("whole", [Budget(10, None), Budget(None, 60.0), Budget(10, 60.0)])
def test_a_budget_has_parts(whole: Budget) -> None:
    first = whole.share(0.5)
    spent = Finish("time is up", (), first.trials or 0, first.seconds or 0.0)
    assert whole.after(spent) == first
    assert whole.after(Finish(INTERRUPTED, (), 0, 0.0)) == NOTHING


def test_two_searches_end_as_the_last_one_or_by_an_interrupt() -> None:
    ends = [Finish("time is up", (), 3, 1.0), Finish("no budget", (), 2, 0.5)]
    assert together(*ends) == Finish("no budget", (), 5, 1.5)
    assert together(Finish(INTERRUPTED, (), 3, 1.0), ends[1]).reason == INTERRUPTED


@pytest.mark.slow
def test_a_run_chooses_the_precision() -> None:
    """On any machine: where there is no choice, the network stays in float32."""
    mod = from_relax(small_network()).mod
    tuned = ansor.auto_schedule(mod, precision="auto", trials=20)
    x = np.random.default_rng(1).standard_normal((1, 3, 12, 12)).astype("float32")
    assert squared_error(results(mixture().wide.mod), tuned(x)) < 1e-4
    names = [task.name for task in tuned.tasks]
    assert len(names) == len(set(names))
