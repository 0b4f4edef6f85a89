"""Ablations of the search and judgements of cost models, on a device that only pretends."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from definitions import HARDWARE, dag, workload

from ansor.config import CostModelConfig, EvolutionConfig, SketchConfig, TuneConfig
from ansor.cost_model.gbdt import ResidualModel
from ansor.cost_model.model import CostModel
from ansor.cost_model.scorer import Estimate
from ansor.errors import ArgumentError
from ansor.executor import in_turns
from ansor.features.loop_tables import Floats
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind
from ansor.program.codec import encode
from ansor.program.program import Program
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task
from benchmarks import cost_model, ranking, search
from benchmarks.ablations import POLICIES, chosen
from benchmarks.curves import Curve, curve, summarise
from benchmarks.measured_programs import draw, measure, settle
from benchmarks.replay import ReplayDevice, Trial
from benchmarks.spaces import sketches_of, task_of

CONFIG = TuneConfig(
    evolution=EvolutionConfig(initial=64, population=24, promise=32, generations=1, batch=8),
    cost_model=CostModelConfig(rounds=4),
)
TASK = Task("matmul_relu", workload("matmul_relu").func, dag("matmul_relu"), "fake")
OP = "matmul:rows=16;columns=32;depth=16"


def latency_of(task: Task, program: Program) -> float:
    """Between 1 and 2 µs, decided by the program alone."""
    digest = hashlib.sha256(encode(program).encode()).hexdigest()
    return 1e-6 * (1 + int(digest[:8], 16) / 2**32)


class Pretend(FakeDevice):
    """What the benchmarks open in place of this machine."""

    def __init__(self, *_: object) -> None:
        super().__init__(latency_of, lambda task, program: None if program.steps else ErrorKind.RUN)
        self.share = in_turns


class Clock:
    """A second passes whenever somebody looks."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def __call__(self) -> float:
        self.time_s += 1
        return self.time_s


def run(command: click.Command, file: Path, *arguments: str) -> tuple[Any, str]:
    """Runs a benchmark; returns the JSON that it wrote and what it printed."""
    result = CliRunner().invoke(command, [*arguments, "--json", str(file)])
    assert result.exception is None, result.output
    return json.loads(file.read_text()), result.output


def searched(policy: str, seed: int = 0, trials: int = 32) -> tuple[Curve, list[str]]:
    """One search on a fresh device, and the programs that it measured."""
    device = FakeDevice(latency_of)
    runs = search.Trials(HARDWARE, ReplayDevice(device, replay=False), trials, CONFIG)
    found = runs.search("op", TASK, policy, seed)
    return found, [encode(program) for _, program in device.trace]


# --- searches -------------------------------------------------------------------------------


def test_searches_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LocalDevice", Pretend)
    monkeypatch.setattr(search, "detect", lambda *_: HARDWARE)
    options = ["--ops", OP, "--policies", "full,random", "--trials", "20", "--seeds", "2"]
    found, output = run(search.main, tmp_path / "search.json", *options, "--replay")
    assert set(found) == {"environment", "results", "curves"}
    assert found["environment"]["seeds"] == [0, 1]
    assert found["environment"]["built"] <= 4 * 20
    assert [(c["policy"], c["seed"]) for c in found["curves"]] == [
        ("full", 0), ("random", 0), ("full", 1), ("random", 1)
    ]  # fmt: skip
    for one in found["curves"]:
        assert len(one["best_us"]) == len(one["seconds"]) == 20
        assert one["best_us"] == sorted(one["best_us"], reverse=True)
        assert one["seconds"] == sorted(one["seconds"])
        assert one["retimed_us"] == pytest.approx(one["best_us"][-1])  # this device is exact
    assert {row["policy"] for row in found["results"]} == {"full", "random"}
    assert all(row["searches"] == 2 and row["ratio"] >= 1 for row in found["results"])
    assert "trials to 5 %" in output


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_searches(policy: str) -> None:
    found, trace = searched(policy)
    assert len(found.best_us) == len(trace) == len(set(trace)) == 32
    assert math.isfinite(found.final_us)


def test_searches_may_begin_after_another() -> None:
    """What was found for a small product is tried first for a larger one, unless that is off."""
    small, large = (task_of(f"matmul:rows={n};columns={n};depth={n}", 2) for n in (64, 128))
    first: dict[str, list[str]] = {}
    for policy in ("full", "no-siblings"):
        device = FakeDevice(lambda _, program: 1e-3 + len(encode(program)) * 1e-6)
        runs = search.Trials(HARDWARE, ReplayDevice(device, replay=False), 16, CONFIG)
        runs.begin_after(small)
        runs.search("large", large, policy, 0)
        first[policy] = [encode(p) for key, p in device.trace if key == large.key]
    assert len(first["full"]) == len(first["no-siblings"]) == 16
    assert first["full"] != first["no-siblings"]


def test_policies_differ_but_repeat_themselves() -> None:
    traces = {policy: searched(policy)[1] for policy in ("full", "no-draft", "no-gbdt", "random")}
    assert len({tuple(trace) for trace in traces.values()}) == 4
    assert searched("random")[1] == traces["random"]


def test_what_is_switched_off_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[None] = []
    original = ResidualModel.fit
    monkeypatch.setattr(
        ResidualModel, "fit", lambda *arguments: (trained.append(None), original(*arguments))
    )
    searched("no-gbdt")
    searched("random")
    assert not trained
    searched("full")
    assert trained


def test_a_blind_search_ignores_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {policy: searched(policy)[1] for policy in ("full", "random")}
    original = CostModel.score_of

    def reversed_score(model: CostModel, estimate: Estimate) -> Floats:
        scores = original(model, estimate)
        return np.where(np.isfinite(scores), -scores, scores)

    monkeypatch.setattr(CostModel, "score_of", reversed_score)
    assert searched("random")[1] == before["random"]
    assert searched("full")[1] != before["full"]


def test_without_a_draft_the_first_batch_is_random_and_the_next_is_learned() -> None:
    trace = searched("no-draft")[1]
    assert trace[:16] == searched("random")[1][:16]
    assert trace[16:] != searched("random")[1][16:]


def test_a_model_without_draft_scores_by_what_it_learned() -> None:
    config = replace(CONFIG.cost_model, use_draft=False)
    model = CostModel(HARDWARE, CPU_SEARCH, config, SketchConfig())
    spaces = sketches_of(TASK, HARDWARE, CONFIG)
    population = max(draw(spaces, model, 400, np.random.default_rng(0)), key=len)
    assert model.is_blind_to(spaces)
    assert set(model.score(population).tolist()) == {0.0}
    model.add("task", population, np.linspace(1e-6, 2e-6, len(population)).tolist())
    assert model.fit()
    assert not model.is_blind_to(spaces)
    assert len(set(model.score(population).tolist())) > 1


def test_unknown_policies_are_named() -> None:
    assert chosen("random,full,random") == ["random", "full"]
    with pytest.raises(ArgumentError, match="policies='fast'"):
        chosen("full,fast")


# --- replay and curves ----------------------------------------------------------------------


def programs(count: int) -> list[Program]:
    """Random ones of the task."""
    model = CostModel(HARDWARE, CPU_SEARCH, CONFIG.cost_model, SketchConfig())
    drawn = draw(sketches_of(TASK, HARDWARE, CONFIG), model, count, np.random.default_rng(0))
    return [population.program(row) for population in drawn for row in range(len(population))]


def test_what_was_measured_is_not_measured_again_but_takes_as_long() -> None:
    inner = FakeDevice(latency_of)
    device = ReplayDevice(inner, replay=True, clock=Clock())
    batch = programs(3)
    first = device.measure(TASK, batch[:2], None)  # one second, by the clock
    before = device.now()
    assert device.measure(TASK, batch[:2], None) == first
    again_s = device.trials[-1].time_s - before
    device.measure(TASK, batch, None)
    assert inner.count == device.built == 3
    assert again_s == 1 + 1  # the time of the first two, and a look at the clock
    assert len(device.trials) == 7


def test_without_replay_every_measurement_is_made() -> None:
    inner = FakeDevice(latency_of)
    device = ReplayDevice(inner, replay=False)
    for _ in range(2):
        device.measure(TASK, programs(2), None)
    assert inner.count == 4


def of(policy: str, seed: int, *latencies_us: float | None) -> Curve:
    trials = [
        Trial(Program(), None if t is None else t * 1e-6, 10.0 + n)
        for n, t in enumerate(latencies_us, 1)
    ]
    return curve("op", policy, seed, trials, 10.0)


def test_curves_fall_and_failures_change_nothing() -> None:
    found = of("full", 0, None, 3.0, 4.0, 2.0, None)
    assert found.best_us == pytest.approx((None, 3.0, 3.0, 2.0, 2.0))
    assert found.seconds == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert found.trials_to(3.5) == 2
    assert found.seconds_to(2.5) == 4.0
    assert found.trials_to(1.0) == math.inf
    assert of("full", 0, None).final_us == math.inf


def test_summaries_are_medians_against_the_best_of_all() -> None:
    curves = [of("full", 0, 9, 2.0), of("full", 1, 2.1, 2.1), of("full", 2, 9, 9, 2.05)]
    full, weak, broken = summarise([*curves, of("weak", 0, 4.0), of("broken", 0, None)])
    assert full.ratio == pytest.approx(2.05 / 2.0)
    assert (full.trials_to_near, full.seconds_to_near) == (2, 2.0)
    assert (full.reached, full.searches) == (3, 3)
    assert (weak.ratio, weak.trials_to_near, weak.reached) == (pytest.approx(2.0), None, 0)
    assert (broken.final_us, broken.ratio) == (None, None)
    assert "-" in search.table([full, weak, broken])
    other = replace(full, op="other", ratio=1.0)
    assert search.overall("full", [full, other])[4] == "1.01"


def test_programs_timed_again_decide() -> None:
    lucky, steady = of("lucky", 0, 1.0), of("steady", 0, 1.5)
    rows = summarise([replace(lucky, retimed_us=3.0), replace(steady, retimed_us=1.5)])
    assert [row.final_us for row in rows] == pytest.approx([1.0, 1.5])
    assert [row.ratio for row in rows] == pytest.approx([2.0, 1.0])


# --- cost models ----------------------------------------------------------------------------


def test_cost_models_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_model, "LocalDevice", Pretend)
    monkeypatch.setattr(cost_model, "detect", lambda *_: HARDWARE)
    options = ["--ops", f"{OP},softmax:rows=16;columns=32", "--programs", "40"]
    found, output = run(cost_model.main, tmp_path / "model.json", *options)
    assert found["environment"]["programs"] == 40
    assert set(found["environment"]["failed"].values()) == {0}
    assert {row["model"] for row in found["results"]} == {
        "draft", "draft, halves", "gbdt, same op", "trees alone, same op", "gbdt, other ops"
    }  # fmt: skip
    assert len(found["results"]) == 2 * 5
    for row in found["results"]:
        assert row["programs"] == (20 if "halves" in row["model"] or "same" in row["model"] else 40)
        assert -1 <= row["spearman"] <= 1
        assert row["best_of_1"] >= row["best_of_5"] >= row["best_of_10"] >= 1
    assert "median" in output


def test_programs_are_legal_distinct_and_keep_their_latencies() -> None:
    model = CostModel(HARDWARE, CPU_SEARCH, CONFIG.cost_model, SketchConfig())
    drawn = draw(sketches_of(TASK, HARDWARE, CONFIG), model, 50, np.random.default_rng(1))
    device = FakeDevice(latency_of, fail_some)
    found = measure(TASK, drawn, device, 8, 3)
    assert sum(map(len, drawn)) == 50 == len(found) + found.failed
    assert found.failed > 0
    assert np.isfinite(found.scores(model)).all()
    mask = np.arange(len(found)) % 3 == 0
    part = found.take(mask)
    again = [latency_of(TASK, p.program(row)) for p in part.populations for row in range(len(p))]
    assert part.latency_s.tolist() == again
    part.teach(model)
    assert model.size == len(part)


def test_what_decides_is_timed_again_in_turns() -> None:
    """One of 50 looks four times as fast as it is; in turns, at half the speed of the machine,
    all of those taken again are in proportion."""
    model = CostModel(HARDWARE, CPU_SEARCH, CONFIG.cost_model, SketchConfig())
    drawn = draw(sketches_of(TASK, HARDWARE, CONFIG), model, 50, np.random.default_rng(1))
    found = measure(TASK, drawn, FakeDevice(latency_of), 8, 3)
    lucky = int(found.latency_s.argmax())
    seen = found.latency_s.copy()
    seen[lucky] = 0.25 * found.latency_s.min()
    slow = FakeDevice(lambda task, program: 2 * latency_of(task, program))
    settled = settle(TASK, replace(found, latency_s=seen), model, slow, 3)
    assert settled.latency_s.tolist() == pytest.approx(found.latency_s.tolist())


def test_what_fails_when_timed_again_is_left_out() -> None:
    model = CostModel(HARDWARE, CPU_SEARCH, CONFIG.cost_model, SketchConfig())
    drawn = draw(sketches_of(TASK, HARDWARE, CONFIG), model, 50, np.random.default_rng(1))
    found = measure(TASK, drawn, FakeDevice(latency_of), 8, 3)
    fastest = found.program(int(found.latency_s.argmin()))
    device = FakeDevice(latency_of, lambda _, p: ErrorKind.RUN if p == fastest else None)
    settled = settle(TASK, found, model, device, 3)
    assert len(settled) == len(found) - 1
    assert settled.failed == 1
    assert settled.latency_s.min() > found.latency_s.min()


def fail_some(task: Task, program: Program) -> ErrorKind | None:
    return ErrorKind.BUILD if latency_of(task, program) > 1.8e-6 else None


def figures(scores: Sequence[float], times: Sequence[float]) -> tuple[float, ...]:
    s, t = np.asarray(scores), np.asarray(times)
    return (
        ranking.spearman(s, t),
        ranking.pairwise(s, t),
        ranking.recall(s, t, 2),
        ranking.best_of_top(s, t, 2),
    )


def test_rankings_by_hand() -> None:
    assert figures([4, 3, 2, 1], [1, 2, 3, 4]) == pytest.approx((1, 1, 1, 1))
    assert figures([1, 2, 3, 4], [1, 2, 3, 4]) == pytest.approx((-1, 0, 0, 3))
    assert figures([3, 4, 2, 1], [1, 3, 2, 4]) == pytest.approx((0.4 + 0.0, 4 / 6, 0.5, 1))
    assert figures([0, 0, 0, 0], [1, 2, 3, 4]) == pytest.approx((0, 0.5, 1, 1))
    assert math.isnan(ranking.pairwise(np.ones(2), np.ones(2)))
    assert ranking.recall(np.ones(3), np.arange(3.0), 10) == 1
