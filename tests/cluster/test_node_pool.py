"""Nodes that join, leave, slow down and fall silent, in simulated seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from definitions import sketches
from fake_world import CONFIG, WEIGHTS, World, latency_of, make_task
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.cluster.device import ClusterDevice
from ansor.cluster.node_pool import NodePool
from ansor.cluster.nodes import Assignment
from ansor.cluster.reference import Reference
from ansor.config import CLUSTER, MeasureConfig
from ansor.errors import MeasureError
from ansor.measure.batches import Batch, BatchQueue, queue_of
from ansor.measure.result import ErrorKind, Verification, successful_measurement
from ansor.program.sketch import Population
from ansor.run.search.budget import Budget
from ansor.run.search.task_limits import TaskLimits
from benchmarks.simulated_nodes import FINGERPRINT, SimulatedNode, SimulatedNodes, report_of

BATCH_S = 4.0
TASK = make_task("row_sum")


class Cluster:
    """Simulated nodes and a device on them; a batch takes four seconds."""

    def __init__(self, *nodes: SimulatedNode, here: Any = FINGERPRINT) -> None:
        self.messages: list[str] = []
        self.tasks: dict[str, Any] = {}
        self.nodes = SimulatedNodes(self.work)
        for number, node in enumerate(nodes):
            self.nodes.add(f"n{number}", node)
        given = Assignment("fake", 1, MeasureConfig())
        self.pool = NodePool(self.nodes, given, report_of("", here), self.messages.append)
        self.device = ClusterDevice(self.pool, given.measure)

    def work(self, method: str, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        self.tasks |= {each.key: each.task() for each in arguments[0]}
        if method == "measure":
            _, key, programs, _ = arguments
            task = replace_name(self.tasks[key])
            times = [latency_of(task, program) for program in programs]
            return [successful_measurement((t,), 0.1, 0.1) for t in times], BATCH_S
        assert method == "verify"
        return [Verification(0.0) for _ in arguments[1]], 1.0

    def ready(self) -> Cluster:
        self.pool.wait_for_nodes()
        return self

    def said(self, text: str) -> int:
        return sum(text in message for message in self.messages)


def replace_name(task: Any) -> Any:
    return next(make_task(n) for n in WEIGHTS if make_task(n).key == task.key)


def node(name: str, **options: Any) -> SimulatedNode:
    return SimulatedNode(report_of(name), **options)


def some(count: int) -> Cluster:
    return Cluster(*(node(f"host{i}") for i in range(count)))


def batch(number: int) -> Batch:
    sketch = sketches("row_sum")[0]
    row = [number % decision.size for decision in sketch.decisions]
    return Batch(TASK, [Population(sketch, np.asarray([row], dtype=np.int32)).program(0)], None)


def collected(cluster: Cluster, count: int) -> list[Batch]:
    return [cluster.device.collect().batch for _ in range(count)]


def test_a_cluster_measures_several_batches_and_is_its_own_queue() -> None:
    cluster = some(3).ready()
    device: BatchQueue = cluster.device
    assert queue_of(cluster.device) is device
    assert device.places == 3
    began_s = cluster.nodes.now()
    batches = [batch(i) for i in range(6)]
    for each in batches:
        device.submit(each)
    found = [device.collect() for _ in batches]
    assert cluster.nodes.now() - began_s == pytest.approx(2 * BATCH_S)
    assert {id(each.batch) for each in found} == set(map(id, batches))
    assert {each.host for each in found} == {"host0", "host1", "host2"}
    for each in found:
        expected = [latency_of(TASK, program) for program in each.batch.programs]
        assert [result.latency_s for result in each.results] == expected


def test_a_task_travels_once_to_each_node() -> None:
    cluster = some(2)
    sent: list[int] = []
    work = cluster.nodes._work

    def counted(method: str, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        sent.append(len(arguments[0]))
        return work(method, arguments)

    cluster.nodes._work = counted
    cluster.ready()
    for number in range(6):
        cluster.device.submit(batch(number))
    collected(cluster, 6)
    assert sent == [1, 1, 0, 0, 0, 0]


def test_the_batch_of_a_lost_node_is_measured_elsewhere() -> None:
    cluster = some(2).ready()
    lost = batch(0)
    cluster.nodes.at(cluster.nodes.now() + 1.0, lambda: cluster.nodes.remove("n0"))
    cluster.device.submit(lost)
    cluster.device.submit(batch(1))
    assert lost in collected(cluster, 2)
    assert cluster.device.places == 1
    assert cluster.said("host0 is lost") == 1


def test_a_silent_node_is_given_up_and_asked_again() -> None:
    cluster = some(2).ready()
    cluster.nodes.present["n0"].is_silent = True
    cluster.nodes.at(cluster.nodes.now() + 100, lambda: awake(cluster))
    cluster.device.submit(batch(0))
    cluster.device.submit(batch(1))
    assert len(set(map(id, collected(cluster, 2)))) == 2
    assert cluster.said("does not answer in time")
    assert cluster.nodes.opened >= 3


def awake(cluster: Cluster) -> None:
    cluster.nodes.present["n0"].is_silent = False


def test_a_new_node_of_the_same_kind_joins_and_another_does_not() -> None:
    cluster = some(1).ready()
    other = replace(FINGERPRINT, processor="another")
    cluster.nodes.add("n1", node("host1"))
    cluster.nodes.add("n2", SimulatedNode(report_of("host2", other)))
    for number in range(6):
        cluster.device.submit(batch(number))
    collected(cluster, 6)
    assert cluster.device.places == 2
    assert cluster.said("host2 is left out: its hardware (another, 4 cores)") == 1


def test_the_kind_of_this_machine_comes_first_and_else_the_most_frequent() -> None:
    other = replace(FINGERPRINT, processor="another")
    nodes = [node("a"), *(SimulatedNode(report_of(f"b{i}", other)) for i in range(2))]
    assert Cluster(*nodes).ready().device.places == 1
    third = replace(FINGERPRINT, processor="third")
    assert Cluster(*nodes, here=third).ready().device.places == 2


def test_a_cluster_without_a_node_that_fits_is_an_error_with_the_reason() -> None:
    cluster = Cluster(SimulatedNode(report_of("host0", why_not="it has 2 cores")))
    with pytest.raises(MeasureError, match=r"host0 is left out: it has 2 cores; start nodes"):
        cluster.pool.wait_for_nodes()


def test_a_cluster_that_loses_all_nodes_ends_with_an_error() -> None:
    cluster = some(1).ready()
    cluster.nodes.at(cluster.nodes.now() + 1.0, lambda: cluster.nodes.remove("n0"))
    cluster.device.submit(batch(0))
    with pytest.raises(MeasureError, match="no node that measures for 600 s"):
        cluster.device.collect()


def test_a_batch_that_takes_its_nodes_with_it_counts_as_crashed() -> None:
    cluster = some(4).ready()
    poison = batch(0)

    def fatal(method: str, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        for name, each in list(cluster.nodes.present.items()):
            if arguments[2] == list(poison.programs) and not each.busy_s:
                each.busy_s = 1.0
                cluster.nodes.at(cluster.nodes.now() + 1.0, lambda n=name: cluster.nodes.remove(n))
                break
        return cluster.work(method, arguments)

    cluster.nodes._work = fatal
    cluster.device.submit(poison)
    found = cluster.device.collect()
    assert found.batch is poison
    assert [result.error for result in found.results] == [ErrorKind.CRASH]
    assert cluster.device.places == 1


def test_a_node_that_drifts_rests_and_its_batch_is_measured_elsewhere() -> None:
    cluster = some(2).ready()
    for number in range(2):
        cluster.device.submit(batch(number))
    collected(cluster, 2)
    cluster.nodes.present["n0"].slowness = 1.5
    recovers_s = cluster.nodes.now() + 90

    def recover() -> None:
        cluster.nodes.present["n0"].slowness = 1.0

    cluster.nodes.at(recovers_s, recover)
    hosts: list[tuple[float, str | None]] = []
    for number in range(80):
        cluster.device.submit(batch(number))
        hosts.append((cluster.nodes.now(), cluster.device.collect().host))
    slow = [host for seconds, host in hosts if seconds < recovers_s]
    assert set(slow) == {"host1"}
    assert cluster.said("takes 1.50 times its shortest time") == 1
    assert cluster.said("host0 is fast again") == 1
    assert "host0" in {host for _, host in hosts}


def test_a_node_that_was_always_slow_differs_from_the_others() -> None:
    cluster = Cluster(node("a"), node("b"), node("c"), node("d", slowness=1.4)).ready()
    for number in range(12):
        cluster.device.submit(batch(number))
    hosts = Counter(cluster.device.collect().host for _ in range(12))
    assert cluster.said("takes 1.40 times the median of the nodes")
    assert hosts["d"] <= 1  # it may have been the first of all to answer
    assert sum(hosts.values()) == 12


def test_abandoned_batches_are_never_returned() -> None:
    """Two are under way when they are abandoned, and one waits."""
    cluster = some(2).ready()
    for number in range(3):
        cluster.device.submit(batch(number))
    cluster.device.abandon()
    last = batch(9)
    cluster.device.submit(last)
    assert cluster.device.collect().batch is last
    assert sum(each.busy_s for each in cluster.nodes.present.values()) == 3 * BATCH_S


def test_checks_are_shared_by_the_nodes() -> None:
    cluster = some(3).ready()
    (program,) = batch(0).programs
    checks = cluster.device.verify([(TASK, program)] * 7)
    assert [check.error for check in checks] == [None] * 7
    assert cluster.device.verify([]) == []


EVENTS = st.lists(
    st.tuples(
        st.floats(1, 60),
        st.sampled_from(["kill", "join", "slow", "silent", "fast"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.integers(1, 12))
def test_each_batch_ends_exactly_once(events: list[tuple[float, str, int]], count: int) -> None:
    """Whatever happens to four nodes, as long as one of them stays."""
    cluster = Cluster(node("safe"), *(node(f"host{i}") for i in range(4))).ready()
    for seconds, what, number in events:
        cluster.nodes.at(seconds, happening(cluster, what, f"n{number + 1}"))
    batches = [batch(i) for i in range(count)]
    for each in batches:
        cluster.device.submit(each)
    found = collected(cluster, count)
    assert Counter(map(id, found)) == Counter(map(id, batches))
    cluster.device.submit(last := batch(99))
    assert cluster.device.collect().batch is last


def happening(cluster: Cluster, what: str, name: str) -> Callable[[], None]:
    nodes = cluster.nodes

    def happen() -> None:
        if what == "kill":
            nodes.remove(name)
        elif what == "join" and name not in nodes.present:
            nodes.add(name, node(name))
        elif name in nodes.present:
            nodes.present[name].is_silent = what == "silent"
            nodes.present[name].slowness = 2.0 if what == "slow" else 1.0

    return happen


def test_a_run_on_a_failing_cluster_ends_with_the_best_of_one_machine() -> None:
    """One node is killed and one joins; each task proposes by its own records alone."""
    config = replace(CONFIG, cost_model=replace(CONFIG.cost_model, use_gbdt=False))
    cluster = some(4).ready()
    cluster.nodes.at(12.0, lambda: cluster.nodes.remove("n1"))
    cluster.nodes.at(15.0, lambda: cluster.nodes.add("n9", node("late")))
    alone, together = World(config=config), World(config=config, device=cluster.device)
    for world in (alone, together):
        world.tuner.run(Budget(per_task=TaskLimits(trials=24)))
    for name in WEIGHTS:
        assert alone.best_s(name) == together.best_s(name)
    assert together.database.count() == alone.database.count() == 24 * len(WEIGHTS)
    hosts = Counter(r.origin.host for r in together.database.all_records("fake"))
    assert set(hosts) <= {"host0", "host1", "host2", "host3", "late"}
    assert CLUSTER.tries > 1


def test_batches_of_a_cluster_that_is_slow_as_a_whole_are_marked() -> None:
    cluster = some(1).ready()
    cluster.device.submit(batch(0))
    (result,) = cluster.device.collect().results
    assert not result.disturbed

    def slows_down(method: str, arguments: tuple[Any, ...]) -> tuple[Any, float]:
        """Whenever it measures; its reference kernel alone is fast."""
        happening(cluster, "slow", "n0")()
        cluster.nodes.at(cluster.nodes.now() + 3 * BATCH_S, happening(cluster, "fast", "n0"))
        return cluster.work(method, arguments)

    cluster.nodes._work = slows_down
    cluster.device.submit(batch(1))
    (result,) = cluster.device.collect().results
    assert result.disturbed
    assert result.latency_s is not None
    assert cluster.said("is left out for a while") == CLUSTER.tries


def test_a_short_disturbance_is_no_drift() -> None:
    times, pauses = iter([1.0, 9.0, 9.0, 1.1, 9.0, 9.0, 9.0, 9.0, 9.0, 2.0]), list[float]()
    reference = Reference(lambda runs: next(times), CLUSTER, pauses.append)
    assert [reference.seconds() for _ in range(3)] == [1.0, 1.1, 2.0]
    assert pauses == [CLUSTER.reference_pause_s] * (2 + CLUSTER.reference_tries)
