"""The protocol of clusters, and the reports of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ansor.cluster.fingerprint import Fingerprint
from ansor.config import CLUSTER, ClusterConfig, MeasureConfig


class NodeLostError(Exception):
    """A node or its measurer is lost; its last request has no answer."""


@dataclass(frozen=True)
class Assignment:
    """The parameters of all measurers.

    Attributes:
        target: canonical text of the TVM target.
        threads: of a kernel while it is timed.
        measure: settings of the measurements.
        cluster: settings of the cluster.
    """

    target: str
    threads: int
    measure: MeasureConfig
    cluster: ClusterConfig = CLUSTER


@dataclass(frozen=True)
class NodeReport:
    """The description of a node.

    Attributes:
        host: its name, for records.
        fingerprint: of its hardware.
        versions: of the packages that affect the speed of programs.
        why_not: why it cannot measure programs of the assignment; "" if it can.
    """

    host: str
    fingerprint: Fingerprint
    versions: tuple[tuple[str, str], ...]
    why_not: str = ""


@dataclass(frozen=True)
class Answer:
    """The result of a node.

    Attributes:
        value: of the method of its device.
        reference_s: seconds of the reference kernel after that; None without one.
    """

    value: Any
    reference_s: float | None = None


class Nodes(Protocol):
    """The machines of a cluster by name, each with one `Measurer` after `open`."""

    def names(self) -> Sequence[str]:
        """The present nodes, in any order."""

    def open(self, node: str) -> None:
        """Starts a measurer that holds all cores of a node; returns at once."""

    def call(self, node: str, method: str, *arguments: Any) -> object:
        """Asks the measurer of a node; returns at once, with a ticket."""

    def wait(self, tickets: Sequence[object], seconds: float) -> Sequence[object]:
        """The answered tickets. Waits up to a number of seconds for the first one."""

    def result(self, ticket: object) -> Any:
        """The answer of a ticket.

        Raises:
            NodeLostError: the measurer failed or is lost.
        """

    def drop(self, node: str) -> None:
        """Ends the measurer of a node; may be called for a lost node."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""

    def close(self) -> None:
        """Ends all measurers; may be called twice."""
