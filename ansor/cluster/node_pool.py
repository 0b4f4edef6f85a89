"""`NodePool`: nodes of one kind that join, leave and slow down, and the jobs that they share."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

from ansor.cluster.drift import Drift
from ansor.cluster.job import Job
from ansor.cluster.kind import chosen_kind, why_not
from ansor.cluster.member import Member
from ansor.cluster.nodes import Answer, Assignment, NodeLostError, NodeReport, Nodes
from ansor.cluster.portable_task import PortableTask, portable
from ansor.errors import MeasureError

Tell = Callable[[str], None]


def nobody(text: str) -> None:
    """Ignores messages."""


class NodePool:
    """Gives each job to a free node of one kind; each job ends once.

    The first nodes determine the kind; other nodes are left out. The jobs of a lost or slow
    node go to another one. A slow node rests until its reference kernel is fast again.

    Args:
        nodes: of the cluster.
        assignment: of their measurements.
        here: the report of this machine, whose kind comes first.
        tell: gets a message when nodes come, go, or are left out.
    """

    def __init__(
        self, nodes: Nodes, assignment: Assignment, here: NodeReport, tell: Tell = nobody
    ) -> None:
        self._nodes, self._assignment, self._here = nodes, assignment, here
        self._config, self._tell = assignment.cluster, tell
        self._members: dict[str, Member] = {}
        self._refused: dict[str, str] = {}
        self._losses: Counter[str] = Counter()  # of a node, in a row
        self._kind: NodeReport | None = None
        self._waiting: deque[Job] = deque()
        self._ended: deque[Job] = deque()
        self._portable: dict[str, PortableTask] = {}
        self._drift = Drift(self._config)
        self._next_look_s = self._alone_since_s = nodes.now()
        self._first_report_s: float | None = None

    @property
    def size(self) -> int:
        """Nodes that measure."""
        return sum(1 for _ in self._measuring())

    @property
    def kind(self) -> NodeReport | None:
        """The report of the first node of the chosen kind; None until a kind is chosen."""
        return self._kind

    @property
    def refused(self) -> dict[str, str]:
        """The reasons why nodes are left out, by their names."""
        return dict(self._refused)

    def wait_for_nodes(self) -> None:
        """Waits until a kind is chosen.

        Raises:
            MeasureError: no node can measure; the reasons are named.
        """
        while self._kind is None:
            self._turn()
            if not self._members and self._refused:
                reasons = "; ".join(self._refused.values())
                raise MeasureError(f"no node can measure: {reasons}", self._remedy)

    @property
    def _remedy(self) -> str:
        given = self._assignment
        return f"start nodes for {given.target} with {given.threads} or more cores"

    def submit(self, job: Job) -> None:
        """Takes a job; a free node gets it at once."""
        self._waiting.append(job)
        self._give_out()

    def wait(self) -> Job:
        """Waits for any job to end.

        Raises:
            MeasureError: there has been no node for too long.
        """
        while not self._ended:
            self._turn()
        return self._ended.popleft()

    def forget_jobs(self) -> None:
        """Drops all jobs; nodes become free after their current jobs."""
        self._waiting.clear()
        self._ended.clear()
        for member in self._members.values():
            if member.job is not None:
                member.job.is_wanted = False

    def close(self) -> None:
        """Ends all measurers; may be called twice."""
        self._nodes.close()

    def _measuring(self) -> Iterator[Member]:
        """The members of the kind that are not slow."""
        if self._kind is not None:
            for member in self._members.values():
                if member.report is not None and member.rests_until_s is None:
                    yield member

    def _turn(self) -> None:
        """Reads the list of nodes, gives out jobs, and waits briefly for answers."""
        now_s = self._nodes.now()
        if now_s >= self._next_look_s:
            self._look()
            self._next_look_s = now_s + self._config.poll_s
        self._give_out()
        asked = {m.ticket: m for m in self._members.values() if m.ticket is not None}
        seconds = max(0.0, self._next_look_s - self._nodes.now())
        for ticket in self._nodes.wait(list(asked), seconds):
            self._take(asked[ticket])
        self._lose_overdue()
        self._choose_kind()
        self._check_alone()

    def _look(self) -> None:
        """Notices nodes that have come or gone."""
        present = set(self._nodes.names())
        for node in sorted(self._members.keys() - present):
            self._lose(self._members[node], "it has left the cluster")
        for node in sorted(present - self._members.keys() - self._refused.keys()):
            self._nodes.open(node)
            self._members[node] = member = Member(node)
            self._ask(member, self._config.start_s, "describe")

    def _ask(self, member: Member, limit_s: float, method: str, *arguments: object) -> None:
        member.ticket = self._nodes.call(member.node, method, *arguments)
        member.due_s = self._nodes.now() + limit_s

    def _give_out(self) -> None:
        """Gives jobs to free nodes, and times the reference kernels of resting ones."""
        for member in list(self._measuring()):
            if member.is_idle and self._waiting:
                self._start(member, self._waiting.popleft())
        for member in self._members.values():
            rests_until_s = member.rests_until_s
            if member.is_idle and rests_until_s is not None and rests_until_s <= self._nodes.now():
                self._ask(member, self._config.answer_s, "reference")

    def _start(self, member: Member, job: Job) -> None:
        fresh = [task for task in job.tasks if task.key not in member.known]
        for task in fresh:
            if task.key not in self._portable:
                self._portable[task.key] = portable(task)
        member.job = job
        member.known |= {task.key for task in fresh}
        tasks = [self._portable[task.key] for task in fresh]
        limit_s = job.limit_s + self._config.answer_s
        self._ask(member, limit_s, job.method, tasks, *job.arguments)

    def _take(self, member: Member) -> None:
        """Notes the answer of a node."""
        ticket, member.ticket = member.ticket, None
        try:
            answer = self._nodes.result(ticket)
        except NodeLostError as error:
            self._lose(member, str(error))
            return
        self._losses[member.node] = 0
        if member.report is None:
            self._admit(member, answer)
        elif member.job is None:
            self._take_reference(member, answer)
        else:
            self._take_job(member, member.job, answer)

    def _admit(self, member: Member, report: NodeReport) -> None:
        """Accepts a node, or leaves it out."""
        member.report = report
        if self._first_report_s is None:
            self._first_report_s = self._nodes.now()
        if reason := why_not(report, self._here):
            self._refuse(member, reason)
        elif self._kind is not None:
            self._join(member)

    def _join(self, member: Member) -> None:
        """Accepts a node that has described itself, if it is of the kind."""
        report, kind = member.report, self._kind
        assert report is not None
        assert kind is not None
        if report.fingerprint == kind.fingerprint:
            self._tell(f"node {report.host} measures, {self.size} in all")
        else:
            text = f"its hardware ({report.fingerprint}) differs from {kind.fingerprint}"
            self._refuse(member, text)

    def _refuse(self, member: Member, reason: str) -> None:
        self._refused[member.node] = f"node {member.host} is left out: {reason}"
        self._tell(self._refused[member.node])
        self._remove(member)

    def _remove(self, member: Member) -> None:
        del self._members[member.node]
        self._drift.forget(member.node)
        self._nodes.drop(member.node)

    def _choose_kind(self) -> None:
        """Chooses a kind once all nodes have described themselves, or enough time has passed."""
        known = [m.report for m in self._members.values() if m.report is not None]
        if self._kind is not None or not known or self._first_report_s is None:
            return
        waited_s = self._nodes.now() - self._first_report_s
        if len(known) < len(self._members) and waited_s < self._config.choice_s:
            return
        self._kind = chosen_kind(known, self._here)
        for member in [m for m in self._members.values() if m.report is not None]:
            self._join(member)

    def _take_job(self, member: Member, job: Job, answer: Answer) -> None:
        """Ends a job, or repeats it on another node if this one was slow."""
        member.job = None
        reason = self._drift.why_slow(member.node, answer.reference_s)
        if reason:
            self._rest(member, f"node {member.host} is left out for a while: {reason}")
            if job.lost + 1 < self._config.tries:
                self._repeat(job, reason)
                return
            job.was_slow = True
        self._end(job, answer.value, member.host)

    def _take_reference(self, member: Member, answer: Answer) -> None:
        """Lets a slow node measure again once it is fast."""
        if self._drift.why_slow(member.node, answer.reference_s):
            self._rest(member)
        else:
            member.rests_until_s = None
            self._tell(f"node {member.host} is fast again and measures")

    def _rest(self, member: Member, text: str = "") -> None:
        member.rests_until_s = self._nodes.now() + self._config.rest_s
        if text:
            self._tell(text)

    def _lose(self, member: Member, reason: str) -> None:
        """Removes a node; another node repeats its job."""
        self._tell(f"node {member.host} is lost: {reason}")
        self._remove(member)
        self._losses[member.node] += 1
        if self._losses[member.node] >= self._config.node_losses:
            self._refused[member.node] = f"node {member.host} is left out: it is lost each time"
        if member.job is not None:
            self._repeat(member.job, reason)

    def _lose_overdue(self) -> None:
        now_s = self._nodes.now()
        for member in list(self._members.values()):
            if not member.is_idle and now_s >= member.due_s:
                self._lose(member, "it does not answer in time")

    def _repeat(self, job: Job, reason: str) -> None:
        """Lets another node do a job; after too many, it has failed."""
        job.lost += 1
        if not job.is_wanted:
            return
        if job.lost < self._config.tries:
            self._waiting.appendleft(job)
        else:
            self._end(job, job.failed(f"{job.lost} nodes were lost with it: {reason}"), None)

    def _end(self, job: Job, value: object, host: str | None) -> None:
        job.value, job.host = value, host
        if job.is_wanted:
            self._ended.append(job)

    def _check_alone(self) -> None:
        """Raises a MeasureError if there has been no node for too long."""
        now_s = self._nodes.now()
        if self.size:
            self._alone_since_s = now_s
        elif now_s - self._alone_since_s >= self._config.alone_s:
            left_out = "; ".join(self._refused.values())
            text = f"the cluster has had no node that measures for {self._config.alone_s:.0f} s"
            raise MeasureError(f"{text}; {left_out or 'all are gone'}", self._remedy)
