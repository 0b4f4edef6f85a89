"""Running processes answer line by line; a failure reports its reason."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from ansor.compare.system_process import Child, ChildError

ECHO = "import sys\nfor line in sys.stdin: print(len(line), flush=True)"

Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a script as a child; all are closed in the end."""
    children: list[Child] = []

    def run(script: str, timeout_s: float = 60.0) -> Child:
        children.append(Child(["-c", script], 3, timeout_s))
        return children[-1]

    yield run
    for each in children:
        each.close()


def test_every_line_has_an_answer(start: Start) -> None:
    echo = start(ECHO)
    assert [echo.ask("a"), echo.ask("four")] == [2, 5]


def test_pools_have_the_threads_that_are_allowed(start: Start) -> None:
    echo = start(
        "import os, sys\nfor line in sys.stdin: print(os.environ[line.strip()], flush=True)"
    )
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")
    assert [echo.ask(name) for name in names] == [3, 3, 3]


def test_a_child_that_dies_says_why(start: Start) -> None:
    dead = start("import sys; sys.stdin.readline(); raise KeyError('nothing')")
    for _ in range(2):  # the second time it is gone already
        with pytest.raises(ChildError, match="KeyError: 'nothing'"):
            dead.ask("hello")


def test_a_child_that_is_killed_says_so(start: Start) -> None:
    dead = start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ChildError, match="exit status -9"):
        dead.ask("hello")


def test_a_child_that_hangs_is_given_up(start: Start) -> None:
    began = time.perf_counter()
    with pytest.raises(ChildError, match="no answer within 1 s"):
        start("import time; time.sleep(60)", timeout_s=1.0).ask("hello")
    assert time.perf_counter() - began < 30


def test_a_closed_child_is_gone(start: Start) -> None:
    echo = start("import os, sys\nfor line in sys.stdin: print(os.getpid(), flush=True)")
    process = echo.ask("who are you?")
    echo.close()
    echo.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
