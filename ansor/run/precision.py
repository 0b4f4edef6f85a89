"""Which functions of a network multiply short floats, within an error budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import tvm

from ansor.errors import ArgumentError
from ansor.frontend.precision.network_form import (
    NetworkForms,
    ReformedNetwork,
    network_forms,
    with_forms,
)
from ansor.frontend.precision.variants import reformed_variants
from ansor.report.precision_table import PrecisionRow
from ansor.run.check.deviation import Deviation
from ansor.run.prepare import Network, split_network

OWN = "multiplies short floats"
SENSITIVE = "too sensitive: alone it makes an error of "


@dataclass(frozen=True, eq=False)
class Assignment:
    """The precision of each function of a network.

    Attributes:
        short: numbers of the calls that multiply short floats.
        reasons: for the precision of a function, by its name.
    """

    short: frozenset[int]
    reasons: Mapping[str, str] = field(default_factory=dict)


def within_budget(
    forms: NetworkForms,
    deviation_of: Callable[[tvm.IRModule], Deviation],
    limit: float,
    share: float = 1.0,
) -> Assignment:
    """All products in short floats, but for the most sensitive ones if the error is over a limit.

    The sensitivity of a function is the error of the network with this function alone in short
    floats, over the operations that float32 would make slower. Its calls go back to float32 one by
    one. Errors add up nearly, which tells how many calls have to.

    Args:
        forms: of the calls.
        deviation_of: the deviation of a network from the original.
        limit: of the error.
        share: of the limit that short floats may use up.

    Raises:
        ArgumentError: no assignment meets the limit; says how far the best one is.
    """

    def error(short: Collection[int]) -> float:
        return deviation_of(with_short(forms, short)).error

    whole = error(forms.multiplying)
    goal = share * limit
    if whole <= goal:
        return Assignment(forms.multiplying)
    alone = {name: error(forms.calls_of({name})) for name in _functions_of(forms)}
    calls = _ranked(forms, alone)
    shares = [alone[name] / len(forms.calls_of({name})) for name in map(forms.function_of, calls)]
    scale, best = whole / (sum(shares) or 1.0), whole
    for count in range(1, len(calls) + 1):
        rest, expected = calls[count:], sum(shares[count:])
        if scale * expected > goal:
            continue
        found = error(rest)
        best = min(best, found)
        if found <= (goal if rest else limit):
            wide = map(forms.function_of, calls[:count])
            return Assignment(frozenset(rest), {n: f"{SENSITIVE}{alone[n]:.1e}" for n in wide})
        scale = found / expected if expected else scale
    raise ArgumentError("max_error", limit, f"no precision meets it; the least error is {best:.3g}")


def _functions_of(forms: NetworkForms) -> list[str]:
    """Names of the functions with products, in the order of their calls."""
    return list(dict.fromkeys(map(forms.function_of, sorted(forms.multiplying))))


def _ranked(forms: NetworkForms, alone: Mapping[str, float]) -> list[int]:
    """Numbers of the calls, of the most sensitive function first.

    Args:
        alone: error of the network with one function in short floats, by the function's name.
    """
    sensitivity = {name: alone[name] / forms.operations_of(name) for name in alone}
    names = sorted(alone, key=lambda name: sensitivity[name], reverse=True)
    return [call for name in names for call in sorted(forms.calls_of({name}))]


def with_short(forms: NetworkForms, short: Collection[int]) -> tvm.IRModule:
    """The network with these calls in short floats."""
    return with_forms(forms, forms.forms(short)).mod


def in_precision(
    network: Network, forms: NetworkForms, assignment: Assignment, target_key: str
) -> Network:
    """The network with its functions in the assigned precision.

    Args:
        network: in float32.
        forms: of its calls.
        assignment: of them.
        target_key: canonical text of the target.
    """
    reformed = with_forms(forms, forms.forms(assignment.short))
    return as_network(network, reformed, precision_rows(forms, assignment), target_key)


def as_network(
    network: Network, reformed: ReformedNetwork, rows: tuple[PrecisionRow, ...], target_key: str
) -> Network:
    """A network in other forms, with its tasks; arguments as for `in_precision`."""
    variants = reformed_variants(list(network.variants.values()), reformed)
    made = split_network(reformed.mod, variants, target_key)
    return replace(
        network,
        mod=made.mod,
        tasks=made.tasks,
        variants=made.variants,
        unscheduled=made.unscheduled,
        precision=rows,
    )


def precision_rows(forms: NetworkForms, assignment: Assignment) -> tuple[PrecisionRow, ...]:
    """For each function in which precision it runs, and why."""
    uses = forms.flow.uses
    calls = Counter(use.function for use in uses)
    short = Counter(forms.function_of(number) for number in assignment.short)
    return tuple(
        PrecisionRow(name, count, short[name], _reason(forms, assignment, name))
        for name, count in calls.items()
    )


def _reason(forms: NetworkForms, assignment: Assignment, name: str) -> str:
    own = OWN if forms.functions[name].multiplies else ""
    return assignment.reasons.get(name, own)


def forms_of(network: Network, dtype: str) -> NetworkForms:
    """The forms that the calls of a network may take.

    Raises:
        ArgumentError: it is a single operator, whose definition says what it multiplies.
    """
    if network.calling is None:
        raise ArgumentError("precision", dtype, "an operator has the dtypes of its definition")
    return network_forms(network.mod, dtype)
