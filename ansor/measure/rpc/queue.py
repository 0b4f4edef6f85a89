"""The wait for a free server of a key."""

from __future__ import annotations

import time

from ansor.errors import MeasureError
from ansor.measure.local.worker_process import readable
from ansor.measure.remote_program import Server
from ansor.measure.rpc.tracker import Reservation, Tracker
from ansor.measure.rpc.wait import Wait


class Queue:
    """At most one request to the tracker. It is repeated after a loss of the tracker.

    Args:
        key: of the servers.
    """

    def __init__(self, tracker: Tracker, key: str) -> None:
        self._tracker, self._key, self._limits = tracker, key, tracker.limits
        self._reservation: Reservation | None = None
        self._next_s = 0.0  # no request before
        self._since_s = time.monotonic()  # without a server

    def ask(self) -> None:
        """Makes a request unless one is under way or the tracker was just lost."""
        if self._reservation is not None or time.monotonic() < self._next_s:
            return
        try:
            self._reservation = self._tracker.request(self._key)
        except MeasureError:
            self._pause()

    def check(self) -> None:
        """Raises a MeasureError if no server was available for too long."""
        if self._has_answer or time.monotonic() < self._since_s + self._limits.wait_s:
            return
        text = f"no server of the key {self._key!r} has opened a session"
        raise MeasureError(
            f"{text} in {self._limits.wait_s:g} s: {self._tracker.text()}",
            "start one with python -m tvm.exec.rpc_server",
        )

    @property
    def _has_answer(self) -> bool:
        """Whether the tracker has answered, or has ended."""
        reservation = self._reservation
        return reservation is not None and readable([reservation.fileno()], 0.0)

    @property
    def waits(self) -> Wait:
        """The wait until the tracker answers or the request is repeated."""
        if self._reservation is None:
            return Wait(deadline_s=self._next_s)
        return Wait((self._reservation.fileno(),), self._since_s + self._limits.wait_s)

    def take(self) -> Server | None:
        """The server, if the tracker has answered."""
        if self._reservation is None or not self._has_answer:
            return None
        try:
            return self._reservation.server()
        except MeasureError:
            self._pause()
            return None
        finally:
            self.withdraw()

    def has_server(self) -> None:
        """Notes that a server is connected."""
        self._since_s = time.monotonic()

    def withdraw(self) -> None:
        """Withdraws the request under way, if there is one."""
        if self._reservation is not None:
            self._reservation.cancel()
            self._reservation = None

    def _pause(self) -> None:
        self._next_s = time.monotonic() + self._limits.tracker_pause_s
