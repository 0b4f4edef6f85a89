"""The time for which the threads of this process have waited for a core."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Linux, Documentation/scheduler/sched-stats.rst: nanoseconds on a core, nanoseconds spent waiting
# for one, and the number of turns.
_TASKS, _FILE, _WAITED = Path("/proc/self/task"), "schedstat", 1
_MOST_BYTES = 128


class RunDelay:
    """A meter for the threads that exist when it is made, which must include the kernels' threads.

    A system without these statistics has no delays.
    """

    def __init__(self) -> None:
        self._files: list[int] = []
        with suppress(OSError):
            self._files += [os.open(task / _FILE, os.O_RDONLY) for task in _TASKS.iterdir()]

    def seconds(self) -> float:
        """The sum over these threads since their start. A thread that still waits is not counted
        yet."""
        return sum(map(_waited_ns, self._files)) / 1e9

    def close(self) -> None:
        """Closes the files; may be called twice."""
        while self._files:
            os.close(self._files.pop())

    def __del__(self) -> None:
        self.close()


def _waited_ns(file: int) -> int:
    """Nanoseconds that one thread has waited; zero after its end."""
    with suppress(OSError, IndexError):
        return int(os.pread(file, _MOST_BYTES, 0).split()[_WAITED])
    return 0
