"""Laws of every search policy, those of the package and one that a test defines."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import HARDWARE, dag, sketches
from fake_world import World
from random_policy import RandomPolicy

from ansor.config import CostModelConfig, EvolutionConfig, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.executor import in_turns
from ansor.policy.base import Policy, PolicyFactory
from ansor.policy.candidate import Candidate
from ansor.policy.registry import POLICIES as NAMED
from ansor.targets.cpu.search import CPU_SEARCH

CONFIG = EvolutionConfig(initial=128, population=32, promise=64, generations=1, batch=8)
FACTORIES = {**NAMED, "test": RandomPolicy}
POLICIES = pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
WITHOUT_SEED = [NAMED["grid"], NAMED["grid+draft"]]  # their order is fixed


def made(factory: PolicyFactory, name: str = "matmul_relu", seed: int = 0) -> Policy:
    model = CostModel(HARDWARE, CPU_SEARCH, CostModelConfig(), SketchConfig())
    rng = np.random.default_rng(seed)
    return factory(dag(name).key, sketches(name), model, CONFIG, rng, in_turns)


def seconds(batch: list[Candidate]) -> list[float | None]:
    return [float(np.exp(-candidate.score)) for candidate in batch]


@POLICIES
def test_proposals_are_new_legal_and_no_more_than_asked_for(factory: PolicyFactory) -> None:
    policy, seen = made(factory), set()
    for _ in range(3):
        batch = policy.propose(8)
        assert 0 < len(batch) <= 8
        signatures = {candidate.signature for candidate in batch}
        assert len(signatures) == len(batch)
        assert not signatures & seen
        assert all(np.isfinite(candidate.score) for candidate in batch)
        policy.learn(batch, seconds(batch))
        seen |= signatures
    assert policy.trials == len(seen)


@POLICIES
def test_the_best_is_the_fastest_that_did_not_fail(factory: PolicyFactory) -> None:
    policy = made(factory)
    batch = policy.propose(4)
    policy.learn(batch, [None, 3e-3, 1e-3, 2e-3])
    assert policy.best is not None
    assert (policy.best.signature, policy.best.latency_s) == (batch[2].signature, 1e-3)
    worse = policy.propose(2)
    policy.learn(worse, [5e-3, None])
    assert policy.best.signature == batch[2].signature


@POLICIES
def test_failures_alone_leave_no_best(factory: PolicyFactory) -> None:
    policy = made(factory)
    batch = policy.propose(3)
    policy.learn(batch, [None] * len(batch))
    assert policy.best is None
    assert policy.trials == len(batch)


def trace(factory: PolicyFactory, seed: int) -> list[bytes]:
    """The programs of a search in order; a third of them fails."""
    policy, failing, found = made(factory, seed=seed), np.random.default_rng(3), list[bytes]()
    for size in (16, 5, 16):
        batch = policy.propose(size)
        found += [candidate.signature for candidate in batch]
        fails = failing.random(len(batch)) < 0.3
        pairs = zip(seconds(batch), fails, strict=True)
        policy.learn(batch, [None if fail else latency_s for latency_s, fail in pairs])
    return found


@POLICIES
def test_the_same_seed_and_latencies_propose_the_same(factory: PolicyFactory) -> None:
    first, second, third = (trace(factory, seed) for seed in (1, 1, 2))
    assert first == second
    assert len(set(first)) == len(first) > 12
    assert (first == third) == (factory in WITHOUT_SEED)


@POLICIES
def test_a_search_in_vain_goes_on(factory: PolicyFactory) -> None:
    policy = made(factory)
    for _ in range(6):
        batch = policy.propose(8)
        assert batch
        policy.learn(batch, [None] * len(batch))
    assert policy.best is None


@POLICIES
def test_earlier_measurements_are_not_proposed_again(factory: PolicyFactory) -> None:
    before = made(factory)
    batch = before.propose(8)
    policy = made(factory)
    programs = [candidate.program for candidate in batch]
    assert policy.restore(programs, seconds(batch)) == len(batch)
    assert policy.trials == len(batch)
    again = {candidate.signature for candidate in policy.propose(8)}
    assert not again & {candidate.signature for candidate in batch}


@POLICIES
def test_a_small_space_is_exhausted(factory: PolicyFactory) -> None:
    policy = made(factory, "total_sum")
    size = sum(sketch.space_size for sketch in policy.sketches)
    for _ in range(size + 1):
        batch = policy.propose(64)
        policy.learn(batch, seconds(batch))
        if policy.exhausted:
            break
    assert policy.exhausted
    assert 0 < policy.trials <= size


@POLICIES
def test_a_promise_and_a_draft_need_no_measurement(factory: PolicyFactory) -> None:
    policy = made(factory)
    best = policy.draft_best()
    assert 0 < policy.promise_s < np.inf
    assert best is not None
    assert policy.trials == 0


@POLICIES
def test_the_tuner_spends_its_trials_on_it(factory: PolicyFactory) -> None:
    world = World("matmul_relu", "row_sum", policy=factory)
    finish = world.run(40)
    assert finish.trials == len(world.trace) == len(set(world.trace)) == 40
    assert all(status.best_s is not None for status in finish.tasks)
