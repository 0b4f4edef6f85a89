"""The reference kernel of a node, which shows the speed of its cores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ansor.cluster.nodes import Assignment
from ansor.config import ClusterConfig
from ansor.measure.child.timing_conditions import core_sentinel
from ansor.targets.host.threads import start_threads


class Reference:
    """Times a kernel again after a pause if it is slow: other work of the system soon ends.

    Args:
        run: returns seconds of the kernel, the shortest of a number of runs.
        config: runs, repetitions and pauses.
        pause: waits for a number of seconds.
    """

    def __init__(
        self,
        run: Callable[[int], float],
        config: ClusterConfig,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run, self._config, self._pause = run, config, pause
        self._best_s = math.inf

    def seconds(self) -> float:
        """Current seconds of the kernel."""
        limit_s = self._best_s * self._config.slower_than_best
        found_s = self._run(self._config.reference_runs)
        for _ in range(self._config.reference_tries):
            if found_s <= limit_s:
                break
            self._pause(self._config.reference_pause_s)
            found_s = min(found_s, self._run(self._config.reference_runs))
        self._best_s = min(self._best_s, found_s)
        return found_s


def reference_here(assignment: Assignment) -> Reference | None:
    """The reference of this machine, on the threads of programs; None if there is none."""
    start_threads(assignment.threads)
    sentinel = core_sentinel(assignment.target, assignment.measure)
    return None if sentinel is None else Reference(sentinel.seconds, assignment.cluster)
