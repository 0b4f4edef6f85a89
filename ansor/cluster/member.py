"""A node that the pool has opened."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.cluster.job import Job
from ansor.cluster.nodes import NodeReport


@dataclass(eq=False)
class Member:
    """A node and what it does at present.

    Attributes:
        node: its name in the cluster.
        ticket: of what it was asked last; None if it has answered.
        due_s: when it counts as lost, if it has not answered.
        report: what it says of itself; None until it does.
        job: that it works on.
        known: keys of the tasks that it has got.
        rests_until_s: when the reference kernel of a slow node is timed again; None for a node that
            is not slow.
    """

    node: str
    ticket: object | None = None
    due_s: float = 0.0
    report: NodeReport | None = None
    job: Job | None = None
    known: set[str] = field(default_factory=set)
    rests_until_s: float | None = None

    @property
    def host(self) -> str:
        """Its name for people."""
        return self.node if self.report is None else self.report.host

    @property
    def is_idle(self) -> bool:
        """Whether it has answered all that it was asked."""
        return self.ticket is None
