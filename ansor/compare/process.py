"""A system in a process of its own, run to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from ansor.errors import AnsorError
from ansor.hardware.threads import pool_variables


class ChildError(AnsorError):
    """A system could not be run."""


def run_child(
    arguments: Sequence[str], threads: int, timeout_s: float, first_path: Sequence[str] = ()
) -> None:
    """Runs Python with the given arguments.

    Args:
        arguments: of the interpreter.
        threads: for every pool that a system may start.
        timeout_s: seconds until it is given up.
        first_path: folders that are searched for modules before all others.

    Raises:
        ChildError: it fails or hangs; the last line of what it said.
    """
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=_environment(threads, first_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildError(f"no answer within {timeout_s:.0f} s") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ChildError(last[0])


def _environment(threads: int, first_path: Sequence[str]) -> dict[str, str]:
    others = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    path = os.pathsep.join([*first_path, *(entry or os.curdir for entry in sys.path)])
    return {**os.environ, **others, **pool_variables(threads), "PYTHONPATH": path}
