"""Calls of a network go back to float32 until an error budget holds, the most sensitive first."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import tvm

from ansor.frontend.precision.network_form import NetworkForms
from ansor.frontend.precision.reformed_network import with_forms
from ansor.run.check.deviation import Deviation

SENSITIVE = "too sensitive: alone it makes an error of "
Error = Callable[[frozenset[int]], float]  # of the network with these calls in short floats


@dataclass(frozen=True)
class Narrowed:
    """A set of calls in short floats after some went back to float32.

    Attributes:
        short: numbers of the calls that remain; None if no assignment meets the budget.
        back: numbers of the calls that went back to float32.
        least_error: of all tried assignments.
    """

    short: frozenset[int] | None
    back: tuple[int, ...]
    least_error: float


class Sensitivities:
    """The sensitivities of a network's functions to short floats.

    The sensitivity of a function is the error of the network with this function alone in short
    floats, over the operations that float32 would make slower.

    Args:
        forms: of the calls.
        deviation_of: the deviation of a network from the original.
    """

    def __init__(
        self, forms: NetworkForms, deviation_of: Callable[[tvm.IRModule], Deviation]
    ) -> None:
        self._forms, self._deviation_of = forms, deviation_of
        self._alone: dict[str, float] = {}

    def error(self, short: Collection[int]) -> float:
        """The error of the network with these calls in short floats."""
        return self._deviation_of(with_short(self._forms, short)).error

    def narrowed(
        self, short: frozenset[int], whole: float, goal: float, limit: float, error: Error
    ) -> Narrowed:
        """Sends calls back to float32 one by one until the error is within the goal.

        Errors are almost additive. This gives the number of calls to change before the error is
        computed again.

        Args:
            short: numbers of the calls that may stay in short floats.
            whole: the error of the network with all of them.
            goal: of the error.
            limit: of the error of the network in float32 alone.
            error: computes errors.
        """
        calls = self._ranked(short)
        shares = [self._share(call) for call in calls]
        scale, least = (whole - self._base) / (sum(shares) or 1.0), whole
        for count in range(1, len(calls) + 1):
            rest, left = frozenset(calls[count:]), sum(shares[count:])
            if rest and math.isfinite(scale) and self._base + scale * left > goal:
                continue
            found = error(rest)
            least = min(least, found)
            if found <= (goal if rest else limit):
                return Narrowed(rest, tuple(calls[:count]), least)
            scale = (found - self._base) / left if left else scale
        return Narrowed(None, (), least)

    def reasons(self, back: Iterable[int]) -> dict[str, str]:
        """The reasons why calls are in float32, by the names of their functions."""
        names = dict.fromkeys(map(self._forms.function_of, back))
        return {name: f"{SENSITIVE}{self._of_function(name):.1e}" for name in names}

    def _of_function(self, name: str) -> float:
        """The error of the network with this function alone in short floats."""
        if name not in self._alone:
            self._alone[name] = self.error(self._forms.calls_of({name}))
        return self._alone[name]

    @cached_property
    def _base(self) -> float:
        """The error of the network in float32."""
        return self.error(frozenset())

    def _share(self, call: int) -> float:
        """A call's part of its function's error."""
        name = self._forms.function_of(call)
        added = max(0.0, self._of_function(name) - self._base)
        return added / len(self._forms.calls_of({name}))

    def _ranked(self, short: Collection[int]) -> list[int]:
        """Numbers of the calls, of the most sensitive function first."""

        def sensitivity(name: str) -> float:
            return self._of_function(name) / self._forms.operations_of(name)

        names = list(dict.fromkeys(map(self._forms.function_of, sorted(short))))
        names.sort(key=sensitivity, reverse=True)
        return [
            call for name in names for call in sorted(self._forms.calls_of({name}) & set(short))
        ]


def with_short(forms: NetworkForms, short: Collection[int]) -> tvm.IRModule:
    """The network with these calls in short floats."""
    return with_forms(forms, forms.forms(short)).mod
