"""`Measurer`: runs on each node, alone on its cores, with its own device."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from tvm.target import Target

from ansor.cluster.fingerprint import fingerprint_here
from ansor.cluster.nodes import Answer, Assignment, NodeReport
from ansor.cluster.portable_task import PortableTask
from ansor.cluster.reference import Reference, reference_here
from ansor.errors import UnsupportedError
from ansor.measure.call_plan import CallPlan
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.program.program import Program
from ansor.targets.host.threads import available_cores
from ansor.targets.target import check_runs_here
from ansor.task import Task
from ansor.version import __version__

KeyedProgram = tuple[str, Program]  # the key of its task, and a program
DeviceFactory = Callable[[Assignment], Device]


def local_device(assignment: Assignment) -> Device:
    """The device that builds and times on the node."""
    return LocalDevice(assignment.target, assignment.threads, assignment.measure)


def package_versions() -> tuple[tuple[str, str], ...]:
    """Versions of the packages that affect the speed of programs."""
    return (("ansor", __version__), ("apache-tvm", version("apache-tvm")))


class Measurer:
    """Measures on the machine that it runs on. Each method takes the tasks that are new to it.

    Args:
        assignment: of the measurements.
        make_device: by default makes a device of worker processes.
    """

    def __init__(self, assignment: Assignment, make_device: DeviceFactory = local_device) -> None:
        self._assignment, self._make_device = assignment, make_device
        self._device: Device | None = None
        self._reference: Reference | None = None
        self._tasks: dict[str, Task] = {}

    def describe(self) -> NodeReport:
        """The report of this machine; its device prepares if the machine is suitable."""
        given = self._assignment
        why_not = _why_not(given)
        if not why_not:
            self._device = self._make_device(given)
            self._device.start()
            self._reference = reference_here(given)
        fingerprint = fingerprint_here(given.target, given.threads)
        return NodeReport(platform.node(), fingerprint, package_versions(), why_not)

    def reference(self) -> Answer:
        """The time of the reference kernel alone."""
        return self._answer(None)

    def measure(
        self,
        tasks: Sequence[PortableTask],
        key: str,
        programs: Sequence[Program],
        best_s: float | None,
    ) -> Answer:
        """See `Device.measure`."""
        self._learn(tasks)
        return self._answer(self._ready.measure(self._tasks[key], programs, best_s))

    def verify(self, tasks: Sequence[PortableTask], candidates: Sequence[KeyedProgram]) -> Answer:
        """See `Device.verify`."""
        self._learn(tasks)
        return self._answer(self._ready.verify(self._with_tasks(candidates)))

    def compare_turns(
        self, tasks: Sequence[PortableTask], key: str, programs: Sequence[Program], rounds: int
    ) -> Answer:
        """See `Device.compare_turns`."""
        self._learn(tasks)
        return self._answer(self._ready.compare_turns(self._tasks[key], programs, rounds))

    def rehearse(
        self,
        tasks: Sequence[PortableTask],
        plan: CallPlan,
        candidates: Mapping[str, Sequence[KeyedProgram]],
        seconds: float,
    ) -> Answer:
        """See `Device.rehearse`."""
        self._learn(tasks)
        named = {name: self._with_tasks(own) for name, own in candidates.items()}
        return self._answer(self._ready.rehearse(plan, named, seconds))

    @property
    def _ready(self) -> Device:
        assert self._device is not None, "a node is described before it is asked"
        return self._device

    def _learn(self, tasks: Sequence[PortableTask]) -> None:
        self._tasks |= {each.key: each.task() for each in tasks}

    def _with_tasks(self, candidates: Sequence[KeyedProgram]) -> list[tuple[Task, Program]]:
        return [(self._tasks[key], program) for key, program in candidates]

    def _answer(self, value: object) -> Answer:
        return Answer(value, None if self._reference is None else self._reference.seconds())


def _why_not(given: Assignment) -> str:
    """Why this machine cannot measure; "" if it can."""
    if (cores := available_cores()) < given.threads:
        return f"it has {cores} cores, programs need {given.threads}"
    try:
        check_runs_here(Target(given.target))
    except UnsupportedError as error:
        return str(error)
    return ""
