"""`Executor`: calls a function with each of several arguments, perhaps in other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Executor(Protocol):
    """Calls a function with each of several arguments, in any order and at the same time.

    The function is known by its module and name, and like what it is given and returns can be sent
    to another process. Returns what each call did, in the order of the arguments.
    """

    def __call__(
        self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]]
    ) -> list[R]: ...


def in_turns(function: Callable[..., R], arguments: Sequence[tuple[Any, ...]]) -> list[R]:
    """The executor that does everything in this thread."""
    return [function(*own) for own in arguments]
