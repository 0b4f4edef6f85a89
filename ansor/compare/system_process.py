"""Systems in separate processes: a process that runs to its end, and one that answers requests.

Both end with this process, however it ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from ansor.closing import Closing
from ansor.config import COMPARE
from ansor.errors import AnsorError
from ansor.parent_death import ending_with_this
from ansor.targets.host.threads import module_path, pool_variables


class ChildError(AnsorError):
    """A system could not be run."""


def run_child(
    arguments: Sequence[str], threads: int, timeout_s: float, first_path: Sequence[str] = ()
) -> None:
    """Runs Python with the given arguments.

    Args:
        arguments: of the interpreter.
        threads: for every pool that a system may start.
        timeout_s: longest run in seconds.
        first_path: folders that are searched for modules before all others.

    Raises:
        ChildError: it fails or hangs; the last line of its output.
    """
    try:
        done = subprocess.run(
            ending_with_this([sys.executable, *arguments]),
            env=_environment(threads, first_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildError(_late(timeout_s)) from error
    if done.returncode:
        raise ChildError(_last_words(done.stderr, done.returncode))


class Child(Closing):
    """A Python process with the given arguments, which answers each line with a line of JSON.

    The arguments are those of `run_child`, but `timeout_s` limits one answer.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        threads: int,
        timeout_s: float,
        first_path: Sequence[str] = (),
    ) -> None:
        self._timeout_s = timeout_s
        # A file, because nothing reads a pipe while the process works.
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._process = subprocess.Popen(
            ending_with_this([sys.executable, *arguments]),
            env=_environment(threads, first_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def ask(self, what: str) -> Any:
        """Sends the process a line; returns its answer.

        Raises:
            ChildError: it has failed or hangs; the last line of its output.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(self._timeout_s, self._give_up, [late])
        timer.start()
        try:
            self._process.stdin.write(f"{what}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if late.is_set():
            raise ChildError(_late(self._timeout_s))
        if not answer:
            raise ChildError(self._why())
        return json.loads(answer)

    def _why(self) -> str:
        """The reason why a process that does not answer has ended."""
        try:
            status = self._process.wait(COMPARE.leave_s)  # it may still be writing the reason
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._said.seek(0)
        return _last_words(self._said.read(), status)

    def _give_up(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def close(self) -> None:
        """Ends the process."""
        try:
            self._process.communicate(timeout=COMPARE.leave_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        except BrokenPipeError:  # it ended before
            self._process.wait()
        self._said.close()


def _late(timeout_s: float) -> str:
    return f"no answer within {timeout_s:.0f} s"


def _last_words(said: str, status: int) -> str:
    lines = said.strip().splitlines()
    return lines[-1] if lines else f"exit status {status}"


def _environment(threads: int, first_path: Sequence[str]) -> dict[str, str]:
    others = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    return {**os.environ, **others, **pool_variables(threads), **module_path(*first_path)}
