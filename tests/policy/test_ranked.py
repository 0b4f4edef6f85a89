"""AutoTVM's trees and annealing: plans of 64, of which three are random."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import drafted_s, run, search_of

from ansor.config.policies import AnnealingConfig, RankTreesConfig
from ansor.policy.candidate import Candidate
from ansor.policy.published import ranked
from ansor.policy.published.ranked import RankedPolicy

SHORT = AnnealingConfig(plan=16, chains=16, steps=20)
QUICK = RankTreesConfig(rounds=20)


def ranked_search(name: str = "matmul_relu", sizes: AnnealingConfig = SHORT) -> RankedPolicy:
    policy: RankedPolicy = search_of(RankedPolicy, name, sizes=sizes, trees=QUICK)
    return policy


def test_a_plan_has_61_programs_of_the_trees_and_3_random_ones() -> None:
    search = ranked_search(sizes=AnnealingConfig(steps=30))
    first = search.propose(64)
    search.learn(first, drafted_s(first))
    spare = {c.signature for c in search._spare}
    plan = search.propose(64)
    assert len(first) == len(plan) == 64
    assert [c.signature in spare for c in plan[61:]] == [True] * 3
    means = [np.mean([c.score for c in part]) for part in (first, plan[:61])]
    assert means[1] > means[0] + 0.5


def test_nothing_is_learned_before_a_plan_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    model = ranked.RankTrees

    class Counted(model):  # type: ignore[misc, valid-type]
        def fit(self, features: np.ndarray, throughput: np.ndarray) -> None:
            fits.append(len(throughput))
            super().fit(features, throughput)

    monkeypatch.setattr(ranked, "RankTrees", Counted)
    run(ranked_search(), 64, 8)
    assert fits == [16, 32, 48]


def test_chains_go_on_from_plan_to_plan() -> None:
    search = ranked_search()
    run(search, 17)
    first = search._chains
    run(search, 16)
    assert first is not None
    assert search._chains is not first
    assert len(first) == 16


def test_failures_count_as_no_throughput() -> None:
    search = ranked_search()
    batch = search.propose(16)
    search.learn(batch, [None, 2e-3] + [4e-3] * 14)
    assert search._throughput().tolist() == [0, 1] + [0.5] * 14
    assert len(search.propose(16)) == 16


def test_failures_alone_lead_to_random_programs() -> None:
    search = ranked_search()
    for _ in range(3):
        batch = search.propose(16)
        assert len(batch) == 16
        search.learn(batch, [None] * 16)


def test_a_space_with_many_equal_programs_fills_its_plans() -> None:
    done = run(ranked_search("softmax"), 128, 16)
    assert len({c.signature for c in done}) == len(done) == 128


def test_it_beats_random_programs() -> None:
    def best(done: list[Candidate]) -> float:
        return max(c.score for c in done)

    search = ranked_search("conv2d", AnnealingConfig(plan=32, steps=60))
    assert best(run(search, 128, 32)) > best(search._random(128))
    assert len(search.sketches) == len(sketches("conv2d"))
