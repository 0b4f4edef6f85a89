"""A tuned network whose error is over the budget: its most sensitive calls go back to float32.

The choice before the search is made with plain loops. The tuned network has a different error:
tuned programs add up in another order, and may be variants that round more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ansor.frontend.precision.network_form import NetworkForms
from ansor.run.check.budget import BudgetComparison
from ansor.run.check.network import NetworkCheck, ResultError
from ansor.run.precision.assignment import Assignment, in_precision
from ansor.run.precision.sensitivity import Sensitivities
from ansor.run.prepare import Network
from ansor.run.tuned.tuned_model import TunedModel


@dataclass(frozen=True, eq=False)
class Allowed:
    """A network, and the allowed forms of its calls within an error budget.

    Attributes:
        network: in float32.
        forms: of its calls.
        sensitivities: of its functions.
        comparison: with the original.
        target_key: canonical text of the target.
    """

    network: Network
    forms: NetworkForms
    sensitivities: Sensitivities
    comparison: BudgetComparison
    target_key: str

    def within_budget(
        self,
        tuned: Sequence[tuple[Network, TunedModel]],
        compiled: Callable[[Network], TunedModel],
        note: Callable[[str], None],
    ) -> TunedModel:
        """The first tuned network within the budget, or else the first one with fewer calls in
        short floats.

        Args:
            tuned: networks in several precisions, and the results.
            compiled: compiles another network with the best known programs.
            note: sends messages to the user.

        Raises:
            ResultError: the error exceeds the budget even in float32; the message has the least
                one.
        """
        checks = []
        for _, model in tuned:
            checks.append(self.comparison.check_tuned(model.here))
            if checks[-1].is_within:
                return self._checked(model, checks[-1])
        return self._with_fewer(tuned[0][0], checks[0], compiled, note)

    def _with_fewer(
        self,
        network: Network,
        check: NetworkCheck,
        compiled: Callable[[Network], TunedModel],
        note: Callable[[str], None],
    ) -> TunedModel:
        """The network with the most sensitive calls in float32, compiled."""
        limit, whole = self.comparison.budget.limit, check.error
        note(f"the error of the tuned network is {whole:.1e}: sensitive calls go to float32")
        attempts: dict[frozenset[int], tuple[TunedModel, NetworkCheck]] = {}

        def error(short: frozenset[int]) -> float:
            made = compiled(self._with_short(network, short, check))
            attempts[short] = made, self.comparison.check_tuned(made.here)
            return attempts[short][1].error

        found = self.sensitivities.narrowed(network.short, whole, limit, limit, error)
        if found.short is None:
            raise ResultError(
                f"the error of the tuned network is {whole:.3g}, and the budget "
                f"is {limit:.3g} ({_figures(check)}); no precision meets it, the least error "
                f"is {found.least_error:.3g}",
                "give a larger max_error",
            )
        return self._checked(*attempts[found.short])

    def _with_short(self, network: Network, short: frozenset[int], check: NetworkCheck) -> Network:
        """The network with fewer calls in short floats."""
        reasons = {row.name: row.reason for row in network.precision}
        back = self.sensitivities.reasons(network.short - short)
        after = f" (the network with it, tuned: {check.error:.1e})"
        reasons |= {name: f"{reason}{after}" for name, reason in back.items()}
        assignment = Assignment(short, reasons)
        return in_precision(self.network, self.forms, assignment, self.target_key)

    def _checked(self, tuned: TunedModel, check: NetworkCheck) -> TunedModel:
        return replace(tuned, checks=(*self.comparison.checks, check))


def _figures(check: NetworkCheck) -> str:
    return "" if check.deviation is None else check.deviation.text
