"""No process is left behind, however its parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from ansor import parent_death
from ansor.parent_death import ending_with_this

WITHIN_S = 5.0  # until all have ended
PATIENCE_S = 120.0  # until they have begun, on a machine that has other work

# A worker that has started a compiler is in machine code for minutes.
MEASURING = """
import sys
sys.path.insert(0, {tests!r})
import test_local_device as t
config = t.dataclasses.replace(t.ONE, build_timeout_s=600.0, run_timeout_s=600.0)
device = t.open_device(config)
device.measure(t.make_task(), t.sketches("compiler and slow"), None)
"""
STARTING = """
import subprocess, sys, time
from ansor.parent_death import ending_with_this
child = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(1000)"]
subprocess.Popen(ending_with_this(child))
time.sleep(1000)
"""


def start(script: str, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(parent_death.__file__).parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive_after(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after the time that they have to end."""
    _, alive = psutil.wait_procs(processes, timeout=WITHIN_S)
    return [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_a_worker_in_machine_code_and_its_compiler_end(tmp_path: Path) -> None:
    file = tmp_path / "compiler"
    script = MEASURING.format(tests=str(Path(__file__).parent))
    with start(script, COMPILER=str(file)) as parent:
        wait_for(lambda: file.exists() and bool(file.read_text()))
        compiler = psutil.Process(int(file.read_text()))
        worker = compiler.parent()
        assert worker is not None
        fork_server = worker.parent()
        assert fork_server is not None
        built_s = worker.cpu_times().user
        wait_for(lambda: worker.cpu_times().user > built_s + 1.0)
        parent.kill()
        assert alive_after([compiler, worker, fork_server]) == []


def test_a_child_ends_with_its_parent() -> None:
    with start(STARTING) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
        assert alive_after([child]) == []


def test_a_child_of_a_parent_that_has_ended_does_not_begin() -> None:
    command = ending_with_this([sys.executable, "-c", "print('begun')"])
    command[command.index(str(os.getpid()))] = str(os.getppid())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_child_becomes_its_command() -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"]
    done = subprocess.run(ending_with_this(command), check=False)
    assert done.returncode == -signal.SIGTERM
