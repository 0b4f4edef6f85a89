"""`CostModel`: the draft alone without records, draft and residual with them; fast; repeatable."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches

from ansor.annotate.sample import sample
from ansor.config import CostModelConfig, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.cost_model.scorer import seconds
from ansor.features.columns import NUM_FEATURES
from ansor.features.legality import legal
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.search import CPU_SEARCH

SKETCH_CONFIG = SketchConfig()


def model(seed: int = 0, **config: float) -> CostModel:
    return CostModel(
        HARDWARE, CPU_SEARCH, replace(CostModelConfig(), **config), SKETCH_CONFIG, seed
    )


def drawn(name: str, count: int, seed: int = 0, sketch: int = 0) -> Population:
    return sample(sketches(name)[sketch], count, np.random.default_rng(seed))


def latencies(population: Population) -> np.ndarray:
    """`[P]` seconds: the draft, wrong by a factor of up to 20 that depends on one tile."""
    drafted = seconds(draft(profile(build_nest(population)), HARDWARE))
    factor = population.values("C.i")[:, 2].astype(np.float32)
    return np.asarray(drafted * (1 + factor))


@pytest.mark.parametrize("name", NAMES)
def test_without_records_it_is_the_draft_and_a_price_for_length(name: str) -> None:
    for number in range(len(sketches(name))):
        population = drawn(name, 64, sketch=number)
        nest = build_nest(population)
        ok = legal(nest, HARDWARE, SKETCH_CONFIG)
        stages = draft(profile(nest), HARDWARE)
        length = np.sum([stage.code for stage in stages.values()], axis=0)
        expected = np.where(ok, -np.log(seconds(stages)) - 1e-5 * length, -np.inf)
        np.testing.assert_allclose(model().score(population), expected, rtol=1e-6)


def test_an_illegal_program_scores_minus_infinity() -> None:
    strict = SketchConfig(max_unrolled_statements=1)
    scores = CostModel(HARDWARE, CPU_SEARCH, CostModelConfig(), strict).score(drawn("matmul", 256))
    assert np.isneginf(scores).any()
    assert np.isfinite(scores).any()


def test_an_estimate_scores_like_its_population() -> None:
    population = drawn("matmul", 128)
    trained = model()
    trained.add("task", population, latencies(population).tolist())
    assert trained.fit()
    estimate = trained.estimate(population)
    assert estimate.features is not None
    assert estimate.features.shape[:2] == (128, 1)
    assert np.isfinite(estimate.features).all()
    (breakdown,) = draft(profile(build_nest(population)), HARDWARE).values()
    told = np.stack(breakdown.columns(breakdown.seconds), axis=1).astype(np.float32)
    np.testing.assert_array_equal(estimate.features[:, 0, NUM_FEATURES:], told)
    np.testing.assert_array_equal(trained.score_of(estimate), trained.score(population))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(x, kind="stable")) for x in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def test_records_make_it_rank_better() -> None:
    learner, unseen = model(slow_factor=math.inf), drawn("matmul", 400, seed=7)
    unseen = unseen.take(np.flatnonzero(np.isfinite(learner.score(unseen))))
    truth = -np.log(latencies(unseen))
    before = spearman(learner.score(unseen), truth)
    known = drawn("matmul", 200, seed=1)
    learner.add("task", known, latencies(known).tolist())
    assert learner.fit()
    after = spearman(learner.score(unseen), truth)
    assert after > before + 0.5 * (1 - before)


def test_one_task_teaches_another() -> None:
    """The residual is learned across tasks: records of one definition improve scores of the
    next."""
    learner, other = model(slow_factor=math.inf), drawn("matmul_relu", 300, seed=7)
    hole = next(d.name for d in other.sketch.decisions if d.name.endswith(".i"))
    drafted = seconds(draft(profile(build_nest(other)), HARDWARE))
    ok = np.isfinite(learner.score(other))
    truth = -np.log(drafted * (1 + other.values(hole)[:, 2]))[ok]
    before = spearman(learner.score(other)[ok], truth)
    known = drawn("matmul", 300, seed=1)
    learner.add("matmul", known, latencies(known).tolist())
    learner.fit()
    after = spearman(learner.score(other)[ok], truth)
    assert after > before + 0.4 * (1 - before)


def test_tasks_of_any_speed_share_one_scale() -> None:
    """Residuals are centred per task: a task that is slower throughout teaches nothing by that."""
    population = drawn("matmul", 64)
    drafted = seconds(draft(profile(build_nest(population)), HARDWARE))
    constant = model()
    constant.add("slow", population, (drafted * 1000).tolist())
    constant.add("fast", population, drafted.tolist())
    constant.fit()
    unseen = drawn("matmul", 64, seed=2)
    np.testing.assert_allclose(constant.score(unseen), model().score(unseen), atol=1e-3)


def learned(error: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """`[P]` each: what the draft says, and what records add to the scores.

    Args:
        error: of the drafted seconds, makes the measured ones.
    """
    population = drawn("matmul", 512)
    drafted = seconds(draft(profile(build_nest(population)), HARDWARE))
    learner = model()
    learner.add("task", population, error(drafted).tolist())
    assert learner.fit()
    before = model().score(population)
    ok = np.isfinite(before)
    return drafted[ok], learner.score(population)[ok] - before[ok]


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_what_is_rightly_called_slow_teaches_nothing(factor: float) -> None:
    """However far off the draft is there: fast programs would be judged by it."""
    _, added = learned(lambda t: np.where(t > 10 * t.min(), t * factor, t))
    assert np.abs(added).max() < 1e-3


def test_what_is_wrongly_called_slow_is_learned() -> None:
    drafted, added = learned(lambda t: np.where(t > 10 * t.min(), t.min(), t))
    slow = drafted > 10 * drafted.min()
    assert 0 < slow.sum() < len(slow)
    assert added[slow].mean() > added[~slow].mean() + 0.5 * math.log(CostModelConfig().slow_factor)


def test_what_is_wrongly_called_fast_is_learned_in_full() -> None:
    """Ten times slower than drafted is far beyond what counts as slow."""
    drafted, added = learned(lambda t: np.where(t < 2 * t.min(), t * 10, t))
    fast = drafted < 2 * drafted.min()
    assert 0 < fast.sum() < len(fast)
    assert added[fast].mean() < added[~fast].mean() - 0.5 * math.log(10)


def test_it_waits_for_enough_records() -> None:
    learner, population = model(min_records=16), drawn("matmul", 64)
    times = latencies(population).tolist()
    assert not learner.fit()
    learner.add("task", population.take(slice(0, 15)), times[:15])
    assert not learner.fit()
    learner.add("task", population.take(slice(15, 16)), times[15:16])
    assert learner.size == 16
    assert learner.fit()
    learner.add("task", population.take(slice(16, 19)), times[16:19])  # less than 20 % more
    assert not learner.fit()
    learner.add("task", population.take(slice(19, 20)), times[19:20])
    assert learner.fit()


def test_nothing_added_is_nothing_learned() -> None:
    learner = model(min_records=0)
    learner.add("task", drawn("matmul", 4).take([]), [])
    assert learner.size == 0


def test_the_same_records_give_the_same_scores() -> None:
    population, unseen = drawn("conv2d", 64), drawn("conv2d", 64, seed=1)
    times = [1e-3 * (1 + i % 7) for i in range(64)]
    found = []
    for _ in range(2):
        learner = model(seed=5)
        learner.add("task", population, times)
        assert learner.fit()
        found.append(learner.score(unseen))
    np.testing.assert_array_equal(*found)


def test_throughput_of_features_and_draft() -> None:
    """The bar is 50 000 a second (`benchmarks.throughput`); here in units of a fixed piece of work,
    about three of them, as a core that is shared makes both slower."""
    scorer, population = model(), drawn("conv2d", 2048, sketch=1)
    factors = np.ones((16, 2048), dtype=np.float32)
    product = np.empty_like(factors)

    def unit() -> None:
        for _ in range(2000):
            np.multiply(factors, factors, out=product)

    def once(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    def estimate() -> None:
        scorer.estimate(population, with_features=True)

    estimate()
    turns = [(once(estimate), once(unit)) for _ in range(9)]
    scored, reference = map(min, zip(*turns, strict=True))
    assert scored < 6 * reference
