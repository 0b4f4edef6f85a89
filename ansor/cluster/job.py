"""One piece of work for any node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansor.task import Task


@dataclass(eq=False)
class Job:
    """A call of a method of `Measurer`.

    Attributes:
        method: its name.
        tasks: that the node must know.
        arguments: after the tasks.
        limit_s: seconds after which a node counts as lost.
        failed: the value if no node can do it, from the reason.
        label: the caller's name for it.
        value: the result when it is done.
        host: that did it.
        lost: number of nodes that were lost, or slow, with it.
        was_slow: whether all nodes that did it were slow.
        is_wanted: False once the caller has forgotten it.
    """

    method: str
    tasks: tuple[Task, ...]
    arguments: tuple[Any, ...]
    limit_s: float
    failed: Callable[[str], Any]
    label: object = None
    value: Any = None
    host: str | None = None
    lost: int = 0
    was_slow: bool = False
    is_wanted: bool = True
