"""The expected gain of one more round for a task (Ansor §6.2, equation 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansor.config import SchedulerConfig


@dataclass(frozen=True)
class TaskProgress:
    """The progress of a task.

    Attributes:
        weight: number of the network's calls of the task. For other objectives than the sum of
            latencies, the decrease of the objective by a second of the task.
        flops: floating-point operations of one run.
        tag: tasks with the same tag are similar.
        best_s: seconds of the best program after each round, None before the first success.
        exhausted: no program is left to try.
        group: tasks of the same group are variants, and the fastest of them counts; "" for none.
        promised_s: expected seconds of a variant's best program, to compare variants; None if
            nothing is known.
    """

    weight: float
    flops: float
    tag: str
    best_s: tuple[float | None, ...] = ()
    exhausted: bool = False
    group: str = ""
    promised_s: float | None = 0.0

    @property
    def rounds(self) -> int:
        """Rounds spent."""
        return len(self.best_s)

    @property
    def latency_s(self) -> float | None:
        """Seconds of the best program, None without one."""
        return self.best_s[-1] if self.best_s else None

    def idle_rounds(self, min_gain: float) -> int:
        """Rounds since the best latency fell by a share of at least `min_gain` (early stopping:
        Ansor §6.3, objective f4)."""
        if self.latency_s is None:
            return 0
        return count_since_gain(self.best_s, min_gain)


def count_since_gain(best_s: Sequence[float | None], min_gain: float) -> int:
    """Number of entries after the last gain.

    Args:
        best_s: seconds of the best program so far, None before the first success.
        min_gain: share of a latency that counts as a gain.
    """
    last = best_s[-1]
    if last is None:
        return len(best_s) - 1
    near = last * (1 + min_gain)
    known = [i for i, best in enumerate(best_s) if best is not None and best <= near]
    return len(best_s) - 1 - known[0]


def gradient(task: TaskProgress, similar: Sequence[TaskProgress], config: SchedulerConfig) -> float:
    """Expected change of the objective by one more round (negative is good).

    ``w (a (g(t) - g(t - D)) / D + (1 - a) min(-g(t) / t, b C / max V - g(t)))`` with g the best
    latency, C the task's FLOPs and V the throughputs that similar tasks reached.

    Args:
        task: has at least one successful round.
        similar: other tasks of the same kind.
        config: a (`alpha`), b (`beta`) and D (`backward_window`).
    """
    latency = task.latency_s
    assert latency is not None
    window = min(config.backward_window, task.rounds - 1)
    earlier = task.best_s[-1 - window] if window else None
    slope = 0.0 if earlier is None else (latency - earlier) / window
    optimistic = -latency / task.rounds
    speeds = [other.flops / other.latency_s for other in similar if other.latency_s]
    if speeds and max(speeds) > 0:
        optimistic = min(optimistic, config.beta * task.flops / max(speeds) - latency)
    return task.weight * (config.alpha * slope + (1 - config.alpha) * optimistic)
