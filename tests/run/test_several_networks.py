"""Several networks at once, with objectives."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from definitions import HARDWARE
from fake_world import CONFIG, TARGET, Recorder, latency_of, make_task

from ansor.database.database import Database
from ansor.database.journal import Journal
from ansor.measure.fake import FakeDevice
from ansor.measure.result import ErrorKind
from ansor.run.search.allocation import OBJECTIVE_MET
from ansor.run.search.budget import Budget
from ansor.run.search.tuner import Tuner
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task_scheduler.objective import LatencyRequirement, Objective, total_latency

NAMES = ("matmul_relu", "depthwise_conv2d", "row_sum")
CALLS = np.array([[2, 1, 0], [0, 1, 3]])  # of the three functions by two networks


def tuner(objective: Objective = total_latency) -> tuple[Tuner, Recorder]:
    events = Recorder()
    tasks = [make_task(name) for name in NAMES]
    device = FakeDevice(latency_of)
    found = Tuner(
        tasks,
        HARDWARE,
        CPU_SEARCH,
        device,
        Journal(Database()),
        CONFIG,
        0,
        [events],
        (),
        CALLS,
        objective,
    )
    return found, events


def rounds(events: Recorder) -> Counter[str]:
    return Counter(done.task.name for done in events.rounds)


def test_each_network_is_the_sum_of_its_functions() -> None:
    found, events = tuner()
    assert found.latency_s is None
    found.run(Budget(48))
    a, b, c = (search.best_s for search in found.searches)
    assert a is not None
    assert b is not None
    assert c is not None
    assert found.latency_s == pytest.approx([2 * a + b, b + 3 * c])
    assert events.rounds[-1].network_s == pytest.approx(2 * a + 2 * b + 3 * c)


def test_a_network_that_is_fast_enough_gets_no_more_rounds() -> None:
    """The requirement of the first network holds from the start; its own function rests."""
    found, events = tuner(LatencyRequirement([1e3, 1e-9]))
    found.run(Budget(160))
    spent = rounds(events)
    assert spent["matmul_relu"] == 1
    assert min(spent["depthwise_conv2d"], spent["row_sum"]) > 1


def test_the_search_ends_when_the_objective_asks_for_no_more() -> None:
    found, events = tuner(LatencyRequirement(1e3))
    finish = found.run(Budget(160))
    assert finish.reason == OBJECTIVE_MET
    assert rounds(events) == dict.fromkeys(NAMES, 1), "one each, to know what they take"


@pytest.mark.slow
def test_a_requirement_that_is_reached_on_the_way_ends_the_search() -> None:
    free, _ = tuner()
    free.run(Budget(400))
    assert free.latency_s is not None
    reached = free.latency_s * 1.1  # turns in another order end some percent apart
    found, events = tuner(LatencyRequirement(reached.tolist()))
    finish = found.run(Budget(2000))
    assert finish.reason == OBJECTIVE_MET
    assert found.latency_s is not None
    assert (found.latency_s <= reached).all()
    assert max(rounds(events).values()) > 1


@pytest.mark.parametrize("failing", [("matmul_relu",), NAMES[:2]])
def test_the_objective_holds_for_what_does_not_fail(failing: tuple[str, ...]) -> None:
    """Both networks are fast enough, as far as anything is known of them: the rest is tried on."""
    events = Recorder()
    fail = {make_task(name).key for name in failing}
    device = FakeDevice(latency_of, lambda t, _: ErrorKind.CRASH if t.key in fail else None)
    tasks, objective = [make_task(name) for name in NAMES], LatencyRequirement(1e3)
    found = Tuner(
        tasks,
        HARDWARE,
        CPU_SEARCH,
        device,
        Journal(Database()),
        CONFIG,
        0,
        [events],
        (),
        CALLS,
        objective,
    )
    finish = found.run(Budget(80))
    spent = rounds(events)
    assert spent["row_sum"] == 1, "the second network"
    if len(failing) == 1:
        assert finish.reason == OBJECTIVE_MET
    else:
        assert spent["matmul_relu"] > 1, "nothing is known of the first network"


def test_functions_carry_the_names_of_the_network_that_asks() -> None:
    found, _ = tuner()
    found.run(Budget(24))
    (plain,) = (task for task in [make_task("row_sum")])
    own = found.functions([plain])
    assert list(own) == ["row_sum"]
    assert own["row_sum"][0].task is plain
    assert own["row_sum"][0].policy is found.searches[2].policy
    assert plain.target == TARGET
