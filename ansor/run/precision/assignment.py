"""The functions of a network that multiply short floats, within an error budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ansor.errors import ArgumentError
from ansor.frontend.optimization import in_groups
from ansor.frontend.precision.network_form import NetworkForms, network_forms
from ansor.frontend.precision.reformed_network import ReformedNetwork, with_forms
from ansor.frontend.precision.variants import reformed_variants
from ansor.report.precision_table import PrecisionRow
from ansor.run.precision.sensitivity import Sensitivities
from ansor.run.prepare import Network, split_network
from ansor.targets.target import resolve_target

OWN = "multiplies short floats"


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
    forms: NetworkForms, sensitivities: Sensitivities, limit: float, share: float = 1.0
) -> Assignment:
    """All products in short floats, except the most sensitive ones if the error exceeds a limit.

    Args:
        forms: of the calls.
        sensitivities: of its functions.
        limit: of the error.
        share: of the limit that short floats may use.

    Raises:
        ArgumentError: no assignment meets the limit; the message has the error of the best one.
    """
    whole, goal = sensitivities.error(forms.multiplying), share * limit
    if whole <= goal:
        return Assignment(forms.multiplying)
    found = sensitivities.narrowed(forms.multiplying, whole, goal, limit, sensitivities.error)
    if found.short is None:
        remedy = f"no precision meets it; allow more, the least error is {found.least_error:.3g}"
        raise ArgumentError("max_error", limit, remedy)
    return Assignment(found.short, sensitivities.reasons(found.back))


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
    return as_network(network, reformed, forms, assignment, target_key)


def as_network(
    network: Network,
    reformed: ReformedNetwork,
    forms: NetworkForms,
    assignment: Assignment,
    target_key: str,
) -> Network:
    """A network in other forms, with its tasks; arguments as for `in_precision`."""
    variants = reformed_variants(list(network.variants.values()), reformed)
    mod = in_groups(reformed.mod, resolve_target(target_key))
    made = split_network(mod, variants, target_key)
    return replace(
        network,
        mod=made.mod,
        tasks=made.tasks,
        variants=made.variants,
        unscheduled=made.unscheduled,
        precision=precision_rows(forms, assignment),
        short=assignment.short,
    )


def precision_rows(forms: NetworkForms, assignment: Assignment) -> tuple[PrecisionRow, ...]:
    """The precision of each function, and the reason for it."""
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
        ArgumentError: it is a single operator, whose definition fixes the dtypes of its operands.
    """
    if network.calling is None:
        raise ArgumentError(
            "precision", dtype, "leave it out; an operator has the dtypes of its definition"
        )
    return network_forms(network.mod, dtype)
