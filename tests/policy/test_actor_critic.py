"""N-A2C: short walks from the best program, and a network that learns the right way."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches
from searches import drafted_s, run, search_of, with_categories

from ansor.config.policies import ActorCriticConfig
from ansor.policy.published.actor_critic import ActorCriticPolicy
from ansor.policy.published.network import ActorCriticNetwork, Transitions
from ansor.policy.published.states import StateTables
from ansor.program.decision import category
from ansor.program.sketch import Sketch

CONFIG = ActorCriticConfig()


def actor_critic(*spaces: Sketch, **sizes: float) -> ActorCriticPolicy:
    config = ActorCriticConfig(**sizes)  # type: ignore[arg-type]
    policy: ActorCriticPolicy = search_of(ActorCriticPolicy, chosen=spaces or None, sizes=config)
    return policy


def transitions(actions: list[int], rewards: list[float]) -> Transitions:
    """Steps from one state with three possible actions of four."""
    count = len(actions)
    possible = np.tile([True, True, True, False], (count, 1))
    states = np.tile([0.5, -0.5, 0.2], (count, 1))
    return Transitions(states, possible, np.asarray(actions), np.asarray(rewards))


def network(config: ActorCriticConfig = CONFIG, seed: int = 0) -> ActorCriticNetwork:
    return ActorCriticNetwork(3, 4, config, np.random.default_rng(seed))


# --- the network ----------------------------------------------------------------------------


def test_the_published_sizes() -> None:
    shapes = [w.shape for w in network().weights]
    assert shapes == [(3, 128), (128,), (128, 4), (4,), (128, 1), (1,)]
    assert (CONFIG.learning_rate, CONFIG.random_rate) == (1e-3, 0.1)


def test_the_probability_of_the_better_action_rises() -> None:
    learner = network()
    done = transitions([0, 1, 0, 1, 2], [1.0, 0.1, 1.0, 0.1, 0.1])
    before = learner.probabilities(done.states[:1], done.possible[:1])[0]
    for _ in range(60):
        learner.train(done)
    after = learner.probabilities(done.states[:1], done.possible[:1])[0]
    assert after[0] > before[0] + 0.1
    assert after[1] < before[1]
    assert after[3] == before[3] == 0
    assert after.sum() == pytest.approx(1)


def test_the_value_approaches_the_reward() -> None:
    learner = network()
    done = transitions([0], [0.7])
    for _ in range(300):
        learner.train(done)
    assert learner.values(done.states)[0] == pytest.approx(0.7, abs=0.1)


def test_a_first_step_of_adam_moves_every_weight_by_the_learning_rate() -> None:
    learner = network()
    before, done = learner.weights, transitions([0, 1], [1.0, 0.2])
    gradient = learner.gradient(done)
    learner.train(done)
    for old, new, slope in zip(before, learner.weights, gradient, strict=True):
        moves = np.abs(slope) > 1e-3
        assert (new - old)[moves] == pytest.approx(-1e-3 * np.sign(slope[moves]), rel=1e-3)


@pytest.mark.parametrize("place", [0, 2, 3, 4, 5])
def test_the_gradient_is_that_of_the_loss_at_a_constant_advantage(place: int) -> None:
    learner, done = network(), transitions([0, 1, 2], [1.0, 0.3, 0.5])
    advantage = done.rewards - learner.values(done.states)
    gradient, step = learner.gradient(done)[place], 1e-6
    where = np.unravel_index(np.argmax(np.abs(gradient)), gradient.shape)
    losses = []
    for sign in (1, -1):
        learner.weights[place][where] += sign * step
        losses.append(learner.loss(done, advantage))
        learner.weights[place][where] -= sign * step
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(gradient[where], rel=1e-4)


# --- states ---------------------------------------------------------------------------------


def test_states_are_small_numbers_that_differ() -> None:
    sketch = with_categories()
    tables = StateTables(sketch)
    near = np.unique([[d.size - 1 for d in sketch.decisions], [0] * len(sketch.decisions)], axis=0)
    states = tables.of(near.astype(np.int32))
    assert states.shape == (2, tables.width)
    assert np.abs(states).max() <= 0.5
    assert (states[0] != states[1]).any()


def test_a_category_without_order_has_a_number_for_each_entry() -> None:
    sketch = with_categories()
    loose = [d for d in sketch.decisions if d.table.shape[1] == 1]
    tiles = [d for d in sketch.decisions if d.table.shape[1] > 1]
    wide = sum(d.size for d in loose) + sum(d.table.shape[1] for d in tiles)
    assert StateTables(sketch).width == wide
    assert category("a", "", (1, 2)).ordered


# --- the search -----------------------------------------------------------------------------


@pytest.mark.parametrize("space", [sketches("matmul_relu")[0], with_categories()])
def test_six_new_programs_within_three_steps_of_the_best(space: Sketch) -> None:
    search = actor_critic(space, random_rate=0.0)
    start = search.propose(64)
    search.learn(start, drafted_s(start))
    for _ in range(6):
        assert search.best is not None
        best, batch = search.best.row, search.propose(64)
        assert len(batch) == 6
        assert all((c.row != best).sum() <= 3 for c in batch)
        search.learn(batch, drafted_s(batch))


def test_a_network_is_trained_when_the_whole_plan_is_measured() -> None:
    search = actor_critic(sketches("matmul_relu")[0])
    run(search, 1)
    first = search.propose(4)
    network = search._walker(first[0].sketch).network
    before = network.weights
    search.learn(first, drafted_s(first))
    assert network.weights is before
    second = search.propose(4)
    assert len(second) == 2
    search.learn(second, [None, 1e-3])
    assert network.weights is not before


def test_rewards_are_relative_to_the_best_and_a_failure_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Transitions] = []
    monkeypatch.setattr(ActorCriticNetwork, "train", lambda _, done: seen.append(done))
    search = actor_critic(sketches("matmul_relu")[0])
    start = search.propose(64)
    search.learn(start, [4e-3])
    batch = search.propose(64)
    search.learn(batch, [None, 2e-3, 4e-3, 8e-3, 2e-3, 2e-3])
    assert sorted(seen[0].rewards) == [0, 0.25, 0.5, 1, 1, 1]


def test_only_sketches_that_were_walked_in_have_a_network() -> None:
    search = actor_critic()
    run(search, len(search.sketches) + 60)
    assert 1 <= len(search._walkers) <= len(search.sketches)
    networks = {id(walker.network) for walker in search._walkers.values()}
    assert len(networks) == len(search._walkers)
