"""The tasks of several networks, each definition once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm
from definitions import dag, workload

from ansor.run.prepare import Network, merged
from ansor.task import Converted, Original, Task


def task(name: str, definition: str, weight: int, original: Original | None = None) -> Task:
    func, graph = workload(definition).func, dag(definition)
    return Task(name, func, graph, "t", weight, in_network=True, original=original)


def network(*tasks: Task) -> Network:
    return Network(tvm.IRModule(), tasks)


def test_one_network_keeps_its_names() -> None:
    own = network(task("f", "matmul", 2), task("g", "softmax", 1))
    tasks, calls = merged({"net": own})
    assert [t.name for t in tasks] == ["f", "g"]
    assert calls.tolist() == [[2, 1]]


def test_shared_definitions_are_counted_for_each_network() -> None:
    first = network(task("f", "matmul", 2), task("g", "softmax", 1))
    second = network(task("x", "softmax", 3), task("y", "row_sum", 4))
    tasks, calls = merged({"a": first, "b": second})
    assert [t.name for t in tasks] == ["a/f", "a/g", "b/y"]
    assert calls.tolist() == [[2, 1, 0], [0, 3, 4]]
    assert [t.weight for t in tasks] == [2, 4, 4]


def test_a_variant_belongs_to_the_function_wherever_that_was_met_first() -> None:
    """Only the second network has a variant of what both call."""
    plain = task("f", "matmul", 1)
    original = Original("h", "winograd2", plain.func, Converted(1, lambda array: array))
    second = network(task("h", "matmul", 2), task("v", "matmul_relu", 2, original))
    tasks, calls = merged({"a": network(plain), "b": second})
    assert [t.group for t in tasks] == ["a/f", "a/f"]
    assert calls.tolist() == [[1, 0], [2, 2]]


@pytest.mark.parametrize("alone", [True, False])
def test_what_is_timed_alone_is_another_task(alone: bool) -> None:
    inside = task("f", "matmul", 1)
    other = replace(inside, in_network=not alone)
    tasks, _ = merged({"a": network(inside), "b": network(other)})
    assert len(tasks) == (2 if alone else 1)
    assert len({t.key for t in tasks}) == len(tasks)
