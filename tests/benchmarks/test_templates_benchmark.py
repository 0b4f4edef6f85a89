"""The benchmark of schedules that are written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from ansor.annotate.sample import sample
from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError
from ansor.lowering.lower import lower
from ansor.templates.template import offers
from benchmarks.operator_case import workload_of
from benchmarks.templates import BY_HAND, by_hand, main


@pytest.mark.parametrize("op", ["GMM.2", "C2D.1", "C2D.2", "SFM.0"])
def test_all_programs_of_the_schedules_are_legal(op: str) -> None:
    func, hand = workload_of(op).func, by_hand(op)
    schedules = [hand.function] if hand.template is None else [hand.template, hand.function]
    for offer in offers(schedules):
        schedule = offer.fitted(func)
        population = sample(schedule.sketch(read_dag(func)), 4, np.random.default_rng(0))
        for row in range(4):
            lower(func, population.program(row), schedule)


def test_an_operator_without_schedules_is_refused() -> None:
    with pytest.raises(ArgumentError, match=", ".join(BY_HAND)):
        by_hand("DEP.0")


@pytest.mark.slow
def test_the_command_writes_a_row_for_each_system(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    arguments = ["--ops", "GMM.0", "--policies", "random", "--trials", "4", "--json", str(file)]
    CliRunner().invoke(main, arguments, catch_exceptions=False)
    rows = json.loads(file.read_text())["results"]
    assert [row["system"] for row in rows] == ["sketches", "template random", "function"]
    assert all(row["max_rel_err"] < 1e-4 and row["trials"] == 4 for row in rows)
