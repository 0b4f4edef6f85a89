"""Rounds of policies whose generations are smaller than a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_world import CONFIG, World

from ansor.policy.registry import POLICIES


@pytest.mark.parametrize("name", ["opevo", "gbfs", "na2c"])
def test_a_round_has_as_many_trials_as_were_asked_for(name: str) -> None:
    evolution = replace(CONFIG.evolution, batch=16)
    world = World("matmul_relu", config=replace(CONFIG, evolution=evolution), policy=POLICIES[name])
    finish = world.run(64)
    (search,) = world.tuner.searches
    assert finish.trials == search.policy.trials == 64
    assert len(world.events.rounds) > len(search.history)
    assert 3 <= len(search.history) <= 4


def test_patience_counts_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generations of eight have as much patience as batches of sixteen."""
    monkeypatch.setattr("fake_world.noise", lambda _: 1.0)
    scheduler = replace(CONFIG.scheduler, patience=3, eps_greedy=0.0, min_gain=10.0)
    evolution = replace(CONFIG.evolution, batch=16)
    config = replace(CONFIG, scheduler=scheduler, evolution=evolution)
    finishes = [
        World("row_sum", config=config, policy=POLICIES[n]).run(200) for n in ("ga", "opevo")
    ]
    assert [finish.trials for finish in finishes] == [64, 64]
