"""A tracker and servers of TVM's RPC on free ports of this machine.

They are TVM's own, from `tvm.rpc`, but one process imports TVM and forks the others, which takes
milliseconds.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ansor.closing import Closing
from ansor.config import RpcConfig
from ansor.errors import MeasureError
from ansor.measure.rpc.tracker import Tracker
from ansor.targets.host.threads import module_path

KEY = "here"
LIMITS = RpcConfig(wait_s=20.0, connect_s=5.0)
_START_S = 120.0


class Farm(Closing):
    """A tracker; servers come and go.

    Attributes:
        port: of the tracker.
        log: what all processes print.
    """

    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.port, self.log = free_port(), folder / "farm.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.rpc_farm_process", str(self.port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **module_path()},
                start_new_session=True,
            )
        self._pids = [self._answer()]
        until(self._has_tracker)

    @property
    def tracker(self) -> Tracker:
        """The client of the tracker."""
        return Tracker(self.host, self.port, LIMITS)

    def serve(self, key: str = KEY, wait_s: float = 0.0) -> int:
        """Starts a server, and returns its process id once the tracker knows it.

        Args:
            wait_s: how long its time evaluator waits for each program.
        """
        port = free_port()
        pid = self._ask(f"server {port} {key} {wait_s}")
        until(lambda: f"{self.host}:{port}" in self.tracker.servers(key))
        return pid

    def _has_tracker(self) -> bool:
        try:
            return bool(self.tracker.text())
        except MeasureError:
            return False

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Sends a signal to a server and the processes of its sessions."""
        with suppress(ProcessLookupError):
            os.killpg(pid, number)

    def kill_servers(self) -> None:
        """Ends all servers."""
        for pid in self._pids[1:]:
            self.kill(pid)
        del self._pids[1:]

    def kill(self, pid: int) -> None:
        """Ends a server."""
        self.signal(pid, signal.SIGKILL)

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._pids.append(self._answer())
        return self._pids[-1]

    def _answer(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.strip().isdecimal(), self.log.read_text()
        return int(line)

    def close(self) -> None:
        """Ends all processes."""
        for pid in self._pids:
            self.kill(pid)
        self._process.kill()
        self._process.communicate()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def free_port() -> int:
    """A port on which nothing listens, most likely for some time."""
    with closed_port() as port:
        return port


def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    end_s = time.monotonic() + _START_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.05)
