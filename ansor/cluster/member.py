"""A node that the pool has opened."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.cluster.job import Job
from ansor.cluster.nodes import NodeReport


@dataclass(eq=False)
class Member:
    """A node and its current work.

    Attributes:
        node: its name in the cluster.
        ticket: of its last request; None if it has answered.
        due_s: time at which it counts as lost without an answer.
        report: its description; None until it is known.
        job: that it works on.
        known: keys of the tasks that it has received.
        rests_until_s: time of the next reference kernel of a slow node; None for a node that is
            not slow.
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
        """Its readable name."""
        return self.node if self.report is None else self.report.host

    @property
    def is_idle(self) -> bool:
        """Whether it has answered its last request."""
        return self.ticket is None
