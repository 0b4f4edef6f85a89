"""`with` for whatever has a `close`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any


class Closing(AbstractContextManager[Any]):
    """Closed at the end of a `with` block, whatever happened in it."""

    def close(self) -> None:
        """Frees what is held; may be called twice."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
