"""The part of a run that puts networks into another precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ansor.config import PRECISION
from ansor.frontend.precision.network_form import with_corrected_biases
from ansor.report.precision_table import precision_text
from ansor.run.arguments import AUTO, SHORT
from ansor.run.check.budget import budget_comparison
from ansor.run.check.network import SourceComparison
from ansor.run.precision.assignment import Assignment, forms_of, in_precision, within_budget
from ansor.run.precision.back_to_float32 import Allowed
from ansor.run.precision.mixture import Mixture
from ansor.run.precision.sensitivity import Sensitivities
from ansor.run.prepare import Network
from ansor.run.search.tuner import Tuner
from ansor.run.settings import Settings
from ansor.targets.registry import backend_of
from ansor.targets.target import Target


@dataclass
class PrecisionPhase:
    """Puts the networks of one run into the precision of its settings.

    Attributes:
        settings: of the run.
        target: that the networks are tuned for.
        text: canonical text of the target.
        note: sends messages to the user.
        allowed: the networks in another precision that the error budget allows, by name.
        mixtures: of the networks whose precision the latencies choose, by name.
    """

    settings: Settings
    target: Target
    text: str
    note: Callable[[str], None]
    allowed: dict[str, Allowed] = field(default_factory=dict)
    mixtures: dict[str, Mixture] = field(default_factory=dict)

    def entered(self, name: str, network: Network, original: SourceComparison | None) -> Network:
        """An imported network in the precision of the settings, within their error budget.

        If latencies choose the precision, it has the functions in both precisions.

        Args:
            name: of the network.
            network: in float32.
            original: its comparison with the model in its framework, if there is one.
        """
        if not self._changes:
            return network
        self.note(f"choosing the precision of {name}")
        given = self.settings
        forms = forms_of(network, SHORT)
        assignment = Assignment(forms.multiplying)
        if given.check_import:
            comparison = budget_comparison(network.mod, original, given.budget, self.target)
            forms = with_corrected_biases(forms, comparison.calibrated)
            sensitivities = Sensitivities(forms, comparison.deviation_of)
            limit, share = given.budget.limit, PRECISION.budget_share
            assignment = within_budget(forms, sensitivities, limit, share)
            self.allowed[name] = Allowed(network, forms, sensitivities, comparison, self.text)
        if given.precision == SHORT:
            return in_precision(network, forms, assignment, self.text)
        self.mixtures[name] = Mixture.of(network, forms, assignment, self.text)
        return self.mixtures[name].both

    @property
    def _changes(self) -> bool:
        """Whether networks may take another precision; "auto" is float32 on other targets."""
        if self.settings.precision not in (SHORT, AUTO):
            return False
        reason = backend_of(self.target).network.why_not_short(self.target, SHORT)
        if reason is not None:
            self.note(f"the precision stays float32: {reason}")
        return reason is None

    def mixed(self, tuner: Tuner, machine: Any) -> dict[str, Network]:
        """The networks in the mixtures that are fastest by the latencies of a search.

        Args:
            tuner: of the functions in both precisions.
            machine: parameters of the machine.
        """
        conversion_s = partial(backend_of(self.target).network.conversion_s, machine)
        found = {}
        for name, mixture in self.mixtures.items():
            searches = tuner.functions(mixture.both.tasks)
            found[name] = mixture.chosen(searches, conversion_s)
            first_line = precision_text(found[name].precision).splitlines()[0]
            self.note(f"{name}: {first_line}")
        return found

    def rivals(self, networks: Mapping[str, Network]) -> dict[str, list[Network]]:
        """The mixture of each network, and its competitors: the network in a single precision."""
        return {name: [networks[name], *mixture.pure] for name, mixture in self.mixtures.items()}
