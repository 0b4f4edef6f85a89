"""Child processes that end with their parent, however that ends.

Linux sends a signal to a process when the thread that started it ends (prctl(2),
PR_SET_PDEATHSIG). The setting survives execve and not fork. It is made by the child itself, so a
parent that ended before is looked for afterwards.

This file also runs alone, as ``python -I -S parent_death.py PARENT_PID COMMAND...``, and becomes
the command. So it imports the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Lets a signal end this process when its parent ends; ends it at once if that has happened.

    On other systems than Linux nothing happens.

    Args:
        parent: process id of the parent.
        by: the signal.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)


def ending_with_this(command: Sequence[str]) -> list[str]:
    """A command for a child of this process that ends with the thread that starts it.

    Args:
        command: a program with its arguments.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
