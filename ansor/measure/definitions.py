"""Tasks in the form for worker processes."""

from __future__ import annotations

import tvm

from ansor.errors import ArgumentError
from ansor.measure.pickled_schedule import pickled
from ansor.measure.protocol import Define, DefineOriginal
from ansor.task import Task


class Definitions:
    """The tasks of a device, each serialised once.

    Args:
        target: text of the target that every task must have.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._known: dict[str, Define] = {}

    def of(self, task: Task) -> Define:
        """The message that makes a task known to a worker.

        Raises:
            ArgumentError: the task is for another target.
        """
        if task.target != self._target:
            remedy = f"give tasks for {self._target!r}, the only target of the device"
            raise ArgumentError("task.target", task.target, remedy)
        if task.key not in self._known:
            text = str(tvm.ir.save_json(task.func))
            by_hand = None if task.by_hand is None else pickled(task.by_hand)
            self._known[task.key] = Define(
                task.key,
                text,
                task.target,
                task.constants,
                task.in_network,
                _original(task),
                by_hand,
            )
        return self._known[task.key]


def _original(task: Task) -> DefineOriginal | None:
    original = task.original
    if original is None:
        return None
    text = str(tvm.ir.save_json(original.func))
    return DefineOriginal(text, original.converted)
