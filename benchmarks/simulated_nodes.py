"""Nodes of a cluster in simulated seconds: for tests, and for clusters larger than the machine."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansor.cluster.fingerprint import Fingerprint
from ansor.cluster.nodes import Answer, NodeLostError, NodeReport

# The value of a method of `Measurer`, and the seconds of a node at full speed.
Work = Callable[[str, tuple[Any, ...]], tuple[Any, float]]
REFERENCE_S = 1e-4
START_S = 5.0
FINGERPRINT = Fingerprint("simulated", frozenset({"avx2"}), 4, (), "")


def report_of(host: str, fingerprint: Fingerprint = FINGERPRINT, why_not: str = "") -> NodeReport:
    """The report of a simulated node."""
    return NodeReport(host, fingerprint, (("ansor", "0"),), why_not)


@dataclass(eq=False)
class SimulatedNode:
    """A node.

    Attributes:
        report: its description.
        slowness: ratio of the time of all work.
        is_silent: whether it never answers.
        busy_s: seconds of its jobs.
    """

    report: NodeReport
    slowness: float = 1.0
    is_silent: bool = False
    busy_s: float = 0.0


@dataclass(order=True)
class _Ticket:
    end_s: float
    number: int
    node: str = field(compare=False)
    value: Any = field(compare=False)
    is_lost: bool = field(compare=False, default=False)


class SimulatedNodes:
    """A cluster whose nodes come, go and change at given times; see `Nodes`.

    Args:
        work: what a node does.

    Attributes:
        present: the nodes by name.
        opened: how often a measurer was started.
    """

    def __init__(self, work: Work) -> None:
        self.present: dict[str, SimulatedNode] = {}
        self.opened = 0
        self._work, self._now_s = work, 0.0
        self._measurers: set[str] = set()
        self._tickets: list[_Ticket] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def add(self, name: str, node: SimulatedNode | None = None) -> None:
        """Lets a node join."""
        self.present[name] = node or SimulatedNode(report_of(name))

    def remove(self, name: str) -> None:
        """Lets a node vanish, with all that it does."""
        self.present.pop(name, None)
        self._end_measurer(name)

    def at(self, seconds: float, event: Callable[[], None]) -> None:
        """Lets something happen at a simulated time."""
        heapq.heappush(self._events, (seconds, next(self._numbers), event))

    def pass_time(self, seconds: float) -> None:
        """Lets the driver do something else for a while."""
        self._now_s += seconds
        self._happen()

    def names(self) -> list[str]:
        """See `Nodes.names`."""
        return list(self.present)

    def open(self, node: str) -> None:
        """See `Nodes.open`."""
        self.opened += 1
        self._measurers.add(node)

    def call(self, node: str, method: str, *arguments: Any) -> object:
        """See `Nodes.call`."""
        found = self.present.get(node)
        if found is None:
            ticket = _Ticket(self._now_s, next(self._numbers), node, None, is_lost=True)
        else:
            value, seconds = self._done(found, method, arguments)
            end_s = float("inf") if found.is_silent else self._now_s + seconds
            ticket = _Ticket(end_s, next(self._numbers), node, value)
        self._tickets.append(ticket)
        return ticket.number

    def _done(
        self, node: SimulatedNode, method: str, arguments: tuple[Any, ...]
    ) -> tuple[Any, float]:
        if method == "describe":
            return node.report, START_S
        value, seconds = (None, 0.0) if method == "reference" else self._work(method, arguments)
        node.busy_s += seconds * node.slowness
        return Answer(value, REFERENCE_S * node.slowness), seconds * node.slowness

    def wait(self, tickets: Sequence[object], seconds: float) -> list[object]:
        """See `Nodes.wait`; the clock goes on to the first answer or event."""
        until_s, asked = self._now_s + max(seconds, 1e-9), set(tickets)
        while True:
            own = sorted(each for each in self._tickets if each.number in asked)
            done = [each for each in own if each.end_s <= self._now_s]
            if done:
                return [each.number for each in done]
            next_s = min([until_s, *(e.end_s for e in own[:1]), *(e[0] for e in self._events[:1])])
            if next_s >= until_s:
                self._now_s = until_s
                return []
            self._now_s = max(self._now_s, next_s)
            self._happen()

    def _happen(self) -> None:
        while self._events and self._events[0][0] <= self._now_s:
            heapq.heappop(self._events)[2]()

    def result(self, ticket: object) -> Any:
        """See `Nodes.result`."""
        found = next(each for each in self._tickets if each.number == ticket)
        self._tickets.remove(found)
        if found.is_lost:
            raise NodeLostError("the simulated node is gone")
        return found.value

    def drop(self, node: str) -> None:
        """See `Nodes.drop`."""
        self._tickets = [each for each in self._tickets if each.node != node]
        self._measurers.discard(node)

    def _end_measurer(self, node: str) -> None:
        for each in self._tickets:
            if each.node == node:
                each.end_s, each.is_lost = self._now_s, True

    def now(self) -> float:
        """See `Nodes.now`."""
        return self._now_s

    def close(self) -> None:
        """See `Nodes.close`."""
        for node in list(self._measurers):
            self.drop(node)
