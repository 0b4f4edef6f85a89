"""`template`: gives a function with knobs a name; and what may stand in ``templates=[...]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

from tvm import tirx

from ansor.dag.from_tir.read import read_dag
from ansor.errors import ArgumentError, TemplateMismatchError
from ansor.program.hand_schedule import HandSchedule
from ansor.templates.config import Config
from ansor.templates.imported_trace import ImportedTrace
from ansor.templates.record import Recording, record


class Offer(Protocol):
    """A schedule that may fit the tasks of a network."""

    @property
    def name(self) -> str:
        """Under which records keep it."""
        ...

    def fitted(self, func: tirx.PrimFunc) -> HandSchedule:
        """The schedule of a definition.

        Raises:
            TemplateMismatchError: it is for other definitions.
            ArgumentError: its function is wrong.
        """
        ...


@dataclass(frozen=True)
class ScheduleFunction:
    """A function of a `Schedule` that samples, after MetaSchedule."""

    name: str
    function: Callable[..., Any]

    def fitted(self, func: tirx.PrimFunc) -> HandSchedule:
        """See `Offer`."""
        run = partial(_on_schedule, self.function)
        return record(self.name, self.function.__module__, run, func).schedule


@dataclass(frozen=True)
class Template:
    """A function with knobs, after AutoTVM.

    Called with its arguments but for the first, it is a definition with a schedule
    (`TemplateCall`). As it stands, it is a schedule for the tasks of a network. Its function then
    takes `cfg` and a `Schedule` of the task.
    """

    name: str
    function: Callable[..., Any]

    def __call__(self, *arguments: Any, **named: Any) -> TemplateCall:
        """The template with arguments."""
        return TemplateCall(self, arguments, named)

    def fitted(self, func: tirx.PrimFunc) -> HandSchedule:
        """See `Offer`."""
        run = partial(_with_config, self.function)
        return record(self.name, self.function.__module__, run, func).schedule


@dataclass(frozen=True, eq=False)
class TemplateCall:
    """A template with arguments: a definition with a schedule that has knobs.

    `auto_schedule` takes it as a model. In ``templates=[...]`` it fits the tasks that compute the
    same.
    """

    template: Template
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """See `Offer`."""
        return self.template.name

    @cached_property
    def _recording(self) -> Recording:
        function = self.template.function
        run = partial(_with_arguments, function, self.arguments, self.named)
        return record(self.name, function.__module__, run)

    @property
    def definition(self) -> tirx.PrimFunc:
        """The computation of the template."""
        return self._recording.definition

    @property
    def schedule(self) -> HandSchedule:
        """Its schedule."""
        return self._recording.schedule

    def fitted(self, func: tirx.PrimFunc) -> HandSchedule:
        """See `Offer`."""
        if read_dag(func).key != read_dag(self.definition).key:
            raise TemplateMismatchError(
                "the template computes something else",
                "let the template compute what the function does",
            )
        return self.schedule


def template(name: str) -> Callable[[Callable[..., Any]], Template]:
    """A decorator that makes a template of a function ``(cfg, ...)``.

    Args:
        name: under which records keep the programs; an identifier of Python.

    Raises:
        ArgumentError: the name is no identifier.
    """
    checked = checked_name(name)
    return lambda function: Template(checked, function)


def offers(templates: Sequence[object]) -> list[Offer]:
    """The schedules of ``templates=[...]`` for tasks.

    Raises:
        ArgumentError: one is no function, or two have one name.
    """
    found = [_offer(each) for each in templates]
    for number, each in enumerate(found):
        if any(other.name == each.name for other in found[:number]):
            raise ArgumentError("templates", each.name, "two have this name; rename one")
    return found


def _offer(given: object) -> Offer:
    if isinstance(given, Template | TemplateCall | ImportedTrace):
        return given
    if not callable(given):
        raise ArgumentError("templates", given, "give templates or functions of a schedule")
    return ScheduleFunction(checked_name(getattr(given, "__name__", repr(given))), given)


def checked_name(name: str) -> str:
    """The name of a schedule.

    Raises:
        ArgumentError: it is no identifier of Python.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError("name", name, "give the schedule a name that is a Python identifier")
    return name


def _on_schedule(function: Callable[..., Any], config: Config, func: tirx.PrimFunc | None) -> Any:
    function(config.schedule(func))


def _with_config(function: Callable[..., Any], config: Config, func: tirx.PrimFunc | None) -> Any:
    return function(config, config.schedule(func))


def _with_arguments(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    config: Config,
    func: tirx.PrimFunc | None,
) -> Any:
    return function(config, *arguments, **named)
