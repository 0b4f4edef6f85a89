"""The fastest mixture of float32 and a shorter dtype in a network, by measured latencies.

Each function has two forms: one in float32, and one of the network whose products all multiply
short floats. Both forms are tasks of one search, as variants of each other. Each call then takes
the form that minimises the sum of latencies and of conversions between calls (`minimum_cut`).

Deviation: Alibaba's PAI estimates the costs of its mixed precision; here they are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansor.frontend.precision.network_form import NetworkForms
from ansor.frontend.precision.reformed_network import with_forms
from ansor.report.formatting import microseconds
from ansor.run.precision.assignment import Assignment, as_network, in_precision, precision_rows
from ansor.run.precision.minimum_cut import Costs, cheapest_second
from ansor.run.prepare import Network
from ansor.run.search.task_search import TaskSearch
from ansor.task import Original, Task

_WIDE_BYTES = 4  # of an element in float32
Searches = Mapping[str, Sequence[TaskSearch]]  # of all tasks of each function


@dataclass(frozen=True, eq=False)
class Mixture:
    """A network in float32 and in a short dtype, and all mixtures of both.

    Attributes:
        wide: the network in float32.
        short: the network with all calls in short floats that the error budget allows.
        callees: of each call, the function in `wide` and the one in `short`.
        forms: of the calls.
        allowed: the assignment of `short`.
        target_key: canonical text of the target.
    """

    wide: Network
    short: Network
    callees: tuple[tuple[str, str], ...]
    forms: NetworkForms
    allowed: Assignment
    target_key: str

    @classmethod
    def of(
        cls, wide: Network, forms: NetworkForms, allowed: Assignment, target_key: str
    ) -> Mixture:
        """The mixture of a network in float32 and its allowed assignment."""
        reformed = with_forms(forms, forms.forms(allowed.short))
        short = as_network(wide, reformed, forms, allowed, target_key)
        names = (use.function for use in forms.flow.uses)
        callees = tuple(zip(names, reformed.callees, strict=True))
        return cls(wide, short, callees, forms, allowed, target_key)

    @property
    def both(self) -> Network:
        """The network in float32, with the short form of each function as a variant of it, and
        the variants of that form as well."""
        return replace(self.wide, tasks=(*self.wide.tasks, *map(self._as_variant, self._added)))

    @property
    def _added(self) -> list[Task]:
        """The tasks of the short network that the network in float32 lacks."""
        wide = {task.name for task in self.wide.tasks}
        return [task for task in self.short.tasks if task.name not in wide]

    def _as_variant(self, task: Task) -> Task:
        """A short form as a variant of its function; a conversion of an input stays alone."""
        function = {short: wide for wide, short in self.callees}.get(task.group)
        if function is None:
            return task
        if task.original is not None:
            return replace(task, original=replace(task.original, name=function))
        return replace(task, original=Original(function, self.forms.dtype, task.func))

    @property
    def pure(self) -> tuple[Network, Network]:
        """The networks in float32 and in short floats alone."""
        products = {self.forms.function_of(call) for call in self.forms.multiplying}
        nothing = Assignment(frozenset(), dict.fromkeys(products, "float32 alone is faster"))
        return replace(self.wide, precision=precision_rows(self.forms, nothing)), self.short

    def chosen(self, searches: Searches, conversion_s: Callable[[int], float]) -> Network:
        """The network in the fastest mixture.

        Args:
            searches: of the tasks of `both`.
            conversion_s: seconds of the conversion of a number of elements.
        """
        short = {task.name: task.group for task in self._added}
        seconds, promised = latencies(searches, short), promises(searches, short)
        costs = {i: costs_of(pair, seconds, promised) for i, pair in self._free.items()}
        second = cheapest_second(costs, self._conversions(conversion_s))
        assignment = Assignment(second & self.allowed.short, self._reasons(seconds))
        return in_precision(self.wide, self.forms, assignment, self.target_key)

    @property
    def _free(self) -> dict[int, tuple[str, str]]:
        """The calls that have two forms, by number."""
        timed = {task.name for task in self.both.tasks}
        pairs = enumerate(self.callees)
        return {i: pair for i, pair in pairs if pair[0] != pair[1] and timed.issuperset(pair)}

    def _conversions(self, conversion_s: Callable[[int], float]) -> dict[tuple[int, int], float]:
        """Seconds of the conversion for each two calls with a short tensor between them."""
        uses, free = self.forms.flow.uses, self._free
        stored = self.forms.stored_short(self.allowed.short)
        makers = {t: i for i, use in enumerate(uses) for t in use.outputs if t in stored}
        found: dict[tuple[int, int], float] = {}
        for i in free:
            for tensor in {t for t in uses[i].inputs if t is not None} & makers.keys():
                pair = makers[tensor], i
                if pair[0] in free:
                    elements = self.forms.flow.num_bytes[tensor] // _WIDE_BYTES
                    found[pair] = found.get(pair, 0.0) + conversion_s(elements)
        return found

    def _reasons(self, seconds: Mapping[str, float]) -> dict[str, str]:
        """The latencies of the functions with a choice, besides the reasons of the error budget."""
        dtype = self.forms.dtype
        texts = {
            wide: f"{_text(seconds[wide])} in float32, {_text(seconds[short])} in {dtype}"
            for i, (wide, short) in self._free.items()
            if i in self.allowed.short
        }
        return {**texts, **self.allowed.reasons}


def _text(seconds: float) -> str:
    return f"{microseconds(seconds)} µs" if math.isfinite(seconds) else "not measured"


def latencies(searches: Searches, short: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each function in float32, and of each short form, by name.

    Forms without a measurement are infinite.

    Args:
        searches: of the tasks of each function.
        short: for each task of the short network, the function there that it computes.
    """
    return _least(searches, short, lambda search: search.best_s or math.inf)


def promises(searches: Searches, short: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each form by the draft, before any measurement."""
    return _least(searches, short, lambda search: search.promised_s or math.inf)


def _least(
    searches: Searches, short: Mapping[str, str], seconds_of: Callable[[TaskSearch], float]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for function, tasks in searches.items():
        for search in tasks:
            name = short.get(search.task.name, function)
            found[name] = min(seconds_of(search), found.get(name, math.inf))
    return found


def costs_of(
    pair: tuple[str, str], seconds: Mapping[str, float], promised: Mapping[str, float]
) -> Costs:
    """The costs of both forms of a call.

    If no form was measured, the promises count. Without a promise, the call stays in float32.
    """
    for known in (seconds, promised):
        costs = Costs(*(known[name] for name in pair))
        if math.isfinite(min(costs.first, costs.second)):
            return costs
    return Costs(0.0, math.inf)
