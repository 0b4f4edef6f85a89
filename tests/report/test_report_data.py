"""What reports compute: curves, the order of predictions, excerpts of assembly, rows."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.report.document.assembly_excerpt import excerpt
from ansor.report.document.curves import (
    failure_counts,
    function_curves,
    network_curve,
    ordered_share,
    predictions,
)
from ansor.report.document.document import FailureCount, Prediction
from ansor.report.document.functions import function_rows
from ansor.report.document.search_data import Trial
from ansor.results import TaskResult
from ansor.run.search.trials import expected_seconds

FUNCTIONS = {"k0": "conv", "k1": "conv", "k2": "mean"}
LATENCIES = st.none() | st.floats(1e-6, 1.0)
TRIALS = st.lists(
    st.builds(
        lambda key, latency_s: Trial(key, 1.0, 2e-3, latency_s, None if latency_s else "run", "no"),
        st.sampled_from(list(FUNCTIONS)),
        LATENCIES,
    ),
    max_size=30,
)


@given(TRIALS)
def test_curves_fall_to_the_best_of_each_function(trials: list[Trial]) -> None:
    curves = function_curves(trials, FUNCTIONS)
    for name in {"conv", "mean"}:
        own = [t for t in trials if FUNCTIONS[t.task] == name]
        times = [t.latency_s for t in own if t.latency_s is not None]
        assert (name in curves) == bool(times)
        if times:
            points = curves[name]
            assert points[-1].best_s == min(times)
            assert points[-1].trials == len(own)
            assert all(a.best_s >= b.best_s and a.trials < b.trials for a, b in pairwise(points))


@given(TRIALS)
def test_the_networks_curve_ends_with_the_sum_of_the_best(trials: list[Trial]) -> None:
    points = network_curve(trials, FUNCTIONS, {"conv": 3, "mean": 1}, {"mean": 0.5})
    best = {name: each[-1].best_s for name, each in function_curves(trials, FUNCTIONS).items()}
    if "conv" not in best:
        assert points == ()
        return
    assert points[-1].best_s == 3 * best["conv"] + best.get("mean", 0.5)
    assert points[-1].trials == len(trials)
    assert all(a.trials < b.trials for a, b in pairwise(points))


@given(TRIALS)
def test_every_trial_is_a_prediction_or_a_failure(trials: list[Trial]) -> None:
    failed = sum(each.count for each in failure_counts(trials, FUNCTIONS))
    assert len(predictions(trials, FUNCTIONS)) + failed == len(trials)


def test_failures_keep_the_first_message() -> None:
    texts = ["first", "second"]
    trials = [Trial("k2", 1.0, None, None, "build", text) for text in texts]
    assert failure_counts(trials, FUNCTIONS) == (FailureCount("mean", "build", 2, "first"),)


def test_pairs_in_order_are_counted_within_functions() -> None:
    pairs = [(1, 10), (2, 20), (3, 15), (3, 40)]  # of six pairs, one is reversed and one is equal
    found = [Prediction("conv", expected, measured) for expected, measured in pairs]
    assert ordered_share(found) == 4 / 5
    assert ordered_share([*found, Prediction("mean", 9, 1)]) == 4 / 5
    assert ordered_share(found[:1]) is None


ASSEMBLY = """\
\t.text
\t.type\tsmall,@function
small:
.Lfunc_begin0:
\t.cfi_startproc
\tretq
\t.type\tlarge,@function
large:
\tmovq\t%rax, %rbx
\tmovl\t%eax, %ebx
.LBB1_2:
.Ltmp3:
"""
ASSEMBLY += "\tvfmadd231ps\t%zmm1, %zmm2, %zmm3\n" * 5
ASSEMBLY += "\tjne\t.LBB1_2\n\taddq\t$1, %rax\n\tretq\n"


def test_an_excerpt_has_the_instructions_of_the_function_with_most_vectors() -> None:
    found = excerpt(ASSEMBLY)
    lines = found.text.splitlines()
    assert lines[0] == "large:"
    assert sum("vfmadd" in line for line in lines) == 5
    assert ".LBB1_2:" in lines
    assert not any(".Ltmp" in line or ".cfi" in line for line in lines)
    assert found.note == f"function large, {len(lines)} lines"


def test_a_short_excerpt_is_where_vectors_are_densest() -> None:
    found = excerpt(ASSEMBLY, most=5)
    assert found.text.count("vfmadd") == 5
    assert found.note == "function large, lines 5 to 9 of 12"


def test_stores_of_zeros_weigh_less_than_products() -> None:
    zeros = "\tvmovups\t%zmm0, 64(%rax)\n" * 9
    text = ASSEMBLY.replace("\tmovq", f"{zeros}\tmovq", 1)
    assert excerpt(text, most=5).text.count("vfmadd") == 5


def test_assembly_without_marks_of_functions_begins_at_its_first_line() -> None:
    assert excerpt("a\nb\nc", most=2).text == "a\nb"


@pytest.mark.parametrize(
    ("score", "seconds"),
    [(0.0, 1.0), (-1e3, None), (math.nan, None), (math.inf, None), (-math.inf, None)],
)
def test_only_a_score_of_a_time_is_a_prediction(score: float, seconds: float | None) -> None:
    assert expected_seconds(score) == seconds


def test_rows_are_ranked_and_computed_from_the_notes() -> None:
    notes = [
        TaskResult("mean", 1, 0, 1e-3, 4, "s", None, errors={"run": 2}),
        TaskResult("conv", 2, 10**9, 2e-3, 4, "s", 1e-6, runner_up_s=3e-3, untuned_s=8e-3),
        TaskResult("sort", 1, 0, None, 0, "untuned", None),
    ]
    conv, mean, unscheduled = function_rows(notes, 1e12, {"conv": 10**8})
    assert (conv.name, mean.name, unscheduled.name) == ("conv", "mean", "sort")
    assert (conv.total_s, conv.share) == (4e-3, 0.8)
    assert (conv.rate, conv.peak_share) == (5e11, 0.5)
    assert (conv.speedup, conv.margin, conv.intensity) == (4.0, 0.5, 10.0)
    assert (mean.flops, mean.rate, mean.intensity, mean.failed) == (None, None, None, 2)
    assert (unscheduled.total_s, unscheduled.share) == (None, None)
