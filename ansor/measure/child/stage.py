"""The stage at which something failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ansor.errors import AnsorError
from ansor.measure.result import ErrorKind


class StageError(AnsorError):
    """Something failed at a known stage."""

    def __init__(self, kind: ErrorKind, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.kind = kind


@contextmanager
def stage(kind: ErrorKind) -> Iterator[None]:
    """Gives every exception inside the block a kind."""
    try:
        yield
    except Exception as error:
        raise StageError(kind, error) from error
