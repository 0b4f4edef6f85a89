"""The tracker of TVM's RPC, which knows the servers of each key and lends them.

Its protocol is that of `tvm.rpc.tracker`. The client there has no limits of time.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tvm.rpc import base

from ansor.config import RpcConfig
from ansor.errors import MeasureError
from ansor.measure.remote_program import Server

_INT = struct.Struct("<i")


@dataclass(frozen=True)
class Tracker:
    """A tracker at an address."""

    host: str
    port: int
    limits: RpcConfig

    @property
    def address(self) -> str:
        """The address in messages."""
        return f"{self.host}:{self.port}"

    def servers(self, key: str) -> list[str]:
        """Addresses of the servers of a key, free or not.

        Raises:
            MeasureError: there is no tracker.
        """
        found = self._summary()["server_info"]
        return [":".join(map(str, info["addr"])) for info in found if _key_of(info) == key]

    def text(self) -> str:
        """The queues of all keys, in one line.

        Raises:
            MeasureError: there is no tracker.
        """
        summary = self._summary()
        counts, queues = _counted(summary), summary["queue_info"]
        rows = [
            f"{key}: {counts[key]} servers, {queues[key]['free']} free, "
            f"{queues[key]['pending']} requests wait"
            for key in sorted(queues)
            if counts[key] or queues[key]["pending"]
        ]
        return f"the tracker at {self.address} has {'; '.join(rows) or 'no servers'}"

    def request(self, key: str) -> Reservation:
        """Asks for the next free server of a key.

        Raises:
            MeasureError: there is no tracker.
        """
        with self.errors():
            connection = self._connected()
            base.sendjson(connection, [base.TrackerCode.REQUEST, key, "", 1])
        return Reservation(self, connection)

    def _summary(self) -> Mapping[str, Any]:
        with self.errors(), self._connected() as connection:
            base.sendjson(connection, [base.TrackerCode.SUMMARY])
            found: Mapping[str, Any] = _answer(connection)
            return found

    def _connected(self) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), self.limits.tracker_s)
        try:
            connection.sendall(_INT.pack(base.RPC_TRACKER_MAGIC))
            if _INT.unpack(base.recvall(connection, _INT.size)) != (base.RPC_TRACKER_MAGIC,):
                raise ValueError("something else answers")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turns errors of the connection into a `MeasureError`."""
        try:
            yield
        except (OSError, ValueError, KeyError) as error:
            remedy = "start one with python -m tvm.exec.rpc_tracker"
            text = f"no tracker of TVM's RPC at {self.address} ({error})"
            raise MeasureError(text, remedy) from error


class Reservation:
    """A request for a server under way."""

    def __init__(self, tracker: Tracker, connection: socket.socket) -> None:
        self._tracker, self._connection = tracker, connection

    def fileno(self) -> int:
        """The descriptor that becomes readable with the answer."""
        return self._connection.fileno()

    def server(self) -> Server:
        """The server, once the descriptor is readable.

        Raises:
            MeasureError: the tracker has ended.
        """
        with self._tracker.errors():
            host, port, match_key = _answer(self._connection)
            return Server(str(host), int(port), str(match_key))

    def cancel(self) -> None:
        """Gives up; the tracker lends the server to another client."""
        with suppress(OSError):
            self._connection.close()


def _answer(connection: socket.socket) -> Any:
    """The value of an answer.

    Raises:
        ValueError: the tracker refuses.
    """
    code, value = base.recvjson(connection)
    if code != base.TrackerCode.SUCCESS:
        raise ValueError(f"it answers {code}: {value}")
    return value


def _counted(summary: Mapping[str, Any]) -> Counter[str]:
    """Number of servers by key."""
    return Counter(map(_key_of, summary["server_info"]))


def _key_of(info: Mapping[str, Any]) -> str:
    """The key of a server, which the tracker has as "server:KEY"."""
    return str(info["key"]).partition(":")[2]
