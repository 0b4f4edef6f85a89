"""Applies schedules that users wrote to the tasks of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ansor.errors import ArgumentError, TemplateMismatchError
from ansor.frontend.distinct_functions import ExtractedFunction
from ansor.frontend.variants import Variant
from ansor.program.hand_schedule import HandSchedule
from ansor.run.prepare import Network
from ansor.task import Original, Task
from ansor.templates.template import Offer

Fits = Mapping[str, Sequence[HandSchedule]]  # of each function that has some, by its name


def offered(
    networks: Mapping[str, Network], offers: Sequence[Offer], alone: bool
) -> dict[str, Network]:
    """The networks with a variant of each function for each schedule that fits it.

    Args:
        networks: by name.
        offers: the schedules.
        alone: whether functions with a fitting schedule have no other candidates.

    Raises:
        ArgumentError: a schedule fits no function, with the reasons; or its function is wrong.
    """
    found, unfit = {}, {offer.name: dict[str, str]() for offer in offers}
    fitting: set[str] = set()
    for name, network in networks.items():
        fits: dict[str, list[HandSchedule]] = {}
        for task in _direct(network.tasks):
            for offer in offers:
                try:
                    fits.setdefault(task.name, []).append(offer.fitted(task.func))
                    fitting.add(offer.name)
                except TemplateMismatchError as error:
                    unfit[offer.name][task.name] = error.problem
        found[name] = scheduled_by_hand(network, fits, alone)
    for offer in offers:
        if offer.name not in fitting:
            raise ArgumentError("templates", offer.name, _fits_nothing(unfit[offer.name]))
    return found


def scheduled_by_hand(network: Network, fits: Fits, alone: bool) -> Network:
    """A network whose functions have schedules that users wrote.

    Args:
        network: the imported one.
        fits: the schedules of its functions.
        alone: whether these functions have no other candidates.
    """
    tasks = list(network.tasks)
    if alone:
        tasks = [task for task in tasks if not fits.get(task.group)]
    variants = dict(network.variants)
    for task in _direct(network.tasks):
        for number, schedule in enumerate(fits.get(task.name, ())):
            if alone and number == 0:
                tasks.append(replace(task, by_hand=schedule))
                continue
            made = _variant(task, schedule)
            tasks.append(made)
            variants[made.name] = _as_variant(made, task)
    return replace(network, tasks=tuple(tasks), variants=variants)


def _direct(tasks: Iterable[Task]) -> list[Task]:
    """The tasks of the model's own definitions."""
    return [task for task in tasks if task.original is None]


def _variant(task: Task, schedule: HandSchedule) -> Task:
    """A task with a schedule in place of sketches."""
    original = Original(task.name, schedule.name, task.func)
    name = f"{task.name}_{schedule.name}"
    return replace(task, name=name, original=original, by_hand=schedule)


def _as_variant(made: Task, task: Task) -> Variant:
    """The same function under another name."""
    function = ExtractedFunction(made.name, task.func, task.weight, task.constants)
    return Variant(made.kind, task.name, function)


def _fits_nothing(reasons: Mapping[str, str]) -> str:
    listed = "; ".join(f"{task}: {reason}" for task, reason in reasons.items())
    return f"it fits no function of the model ({listed}); leave it out"
