"""Compares definitions without schedules with the best programs: tuning must not make them
slower."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ansor.config import MeasureConfig
from ansor.measure.device import Device
from ansor.program.program import Program
from ansor.run.search.task_search import TaskSearch
from ansor.run.winners.leader_times import in_turns
from ansor.run.winners.leaders import Leader, latency_of
from ansor.task import Task


def with_untuned(
    functions: Mapping[str, Sequence[TaskSearch]],
    leaders: Mapping[str, Sequence[Leader]],
    device: Device,
    config: MeasureConfig,
) -> dict[str, list[Leader]]:
    """The leaders of each function with its untuned program among them, fastest first.

    An untuned program may take a thousand times as long as the best. It is run if its expected time
    fits into `config.untuned_s` for all functions together; likely winners come first. A program
    near the best is compared with it in turns.
    """
    found = {name: list(leading) for name, leading in leaders.items()}
    ahead = {n: leading[0] for n, leading in found.items() if leading and leading[0].latency_s}
    tasks = {name: functions[name][0] for name in ahead}
    expected = {name: expected_s(search.task, config) for name, search in tasks.items()}
    left_s = config.untuned_s
    for name in sorted(ahead, key=lambda name: expected[name] / latency_of(ahead[name])):
        left_s -= expected[name]
        if left_s < 0:
            break
        untuned = Leader(tasks[name].task, Program(), expected[name], least_s=tasks[name].least_s)
        found[name] = _placed(found[name], untuned, device, config)
    return found


def expected_s(task: Task, config: MeasureConfig) -> float:
    """Expected seconds of all runs of the untuned program, by its iterations."""
    stages = task.dag.stages.values()
    iterations = sum(math.prod(axis.size for axis in stage.axes) for stage in stages)
    return config.untuned_runs * config.iteration_s * iterations


def _placed(
    leading: Sequence[Leader], untuned: Leader, device: Device, config: MeasureConfig
) -> list[Leader]:
    """The leaders and the untuned program, in the order of their latencies."""
    best = leading[0]
    (untuned,) = in_turns([untuned], device, config, most=1)
    if latency_of(untuned) <= latency_of(best) * config.abort_factor:
        untuned = _compared(best, untuned, device, config)
    return sorted([*leading, untuned], key=latency_of)


def _compared(best: Leader, untuned: Leader, device: Device, config: MeasureConfig) -> Leader:
    """The untuned program with its latency scaled to the best one's, by a comparison in turns.

    The best program keeps its latency from the comparison with the other leaders.
    """
    if best.task is untuned.task:
        again, untuned = in_turns([best, untuned], device, config)
    else:
        (again,), (untuned,) = (in_turns([x], device, config) for x in (best, untuned))
    if again.latency_s is None or untuned.latency_s is None or best.latency_s is None:
        return untuned
    return replace(untuned, latency_s=best.latency_s * (untuned.latency_s / again.latency_s))
