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
        label: what the caller knows it by.
        value: once it is done.
        host: that did it.
        lost: nodes that were lost, or slow, with it.
        was_slow: whether the node that did it was slow, like all before.
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
