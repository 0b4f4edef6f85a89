"""Compares networks in short floats with the results in float32, within an error budget."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import tvm
from tvm.target import Target

from ansor.frontend.deploy.runtime import CompiledModel, compile_model, random_inputs
from ansor.run.check.deviation import Deviation, ErrorBudget, deviation, worst
from ansor.run.check.input_sets import EXTREME, Array, InputSet
from ansor.run.check.network import (
    NetworkCheck,
    SourceComparison,
    check_target,
    outputs_of,
    with_plain_loops,
)
from ansor.targets.host.threads import running_threads

OWN = "the network in float32"


class BudgetComparison:
    """Compares networks with results in float32, on the same inputs.

    Extreme values are left out, because one of them outweighs the rest of a tensor in the figures.

    Args:
        framework: that computed the results.
        sets: inputs and results.
        budget: how far results may be apart.
        target: of the networks.
        checks: earlier comparisons of the network.
    """

    def __init__(
        self,
        framework: str,
        sets: Sequence[InputSet],
        budget: ErrorBudget,
        target: Target,
        checks: Sequence[NetworkCheck] = (),
    ) -> None:
        self.budget, self.checks = budget, list(checks)
        self._framework, self._target = framework, check_target(target)
        self._sets = [one for one in sets if one.name != EXTREME]

    def deviation_of(self, mod: tvm.IRModule) -> Deviation:
        """The deviation of an optimised network, compiled with plain loops."""
        compiled = compile_model(with_plain_loops(mod), self._target, running_threads())
        return self._deviation(compiled)

    def calibrated(self, mod: tvm.IRModule) -> list[Array]:
        """The outputs of an optimised network for the user's examples, or for ordinary values."""
        compiled = compile_model(with_plain_loops(mod), self._target, running_threads())
        return outputs_of(compiled, self._sets[0].arrays)

    def check_tuned(self, compiled: CompiledModel) -> NetworkCheck:
        """The comparison of a tuned network, whether it is within the budget or not."""
        began = time.monotonic()
        found = self._deviation(compiled)
        elapsed_s = time.monotonic() - began
        names = tuple(one.name for one in self._sets)
        stage, limit = "tuned network", self.budget.limit
        return NetworkCheck(stage, self._framework, names, found.largest, elapsed_s, found, limit)

    def _deviation(self, compiled: CompiledModel) -> Deviation:
        with np.errstate(all="ignore"):
            return worst(
                [
                    deviation(one.results, outputs_of(compiled, one.arrays), self.budget.metric)
                    for one in self._sets
                ]
            )


def budget_comparison(
    mod: tvm.IRModule, original: SourceComparison | None, budget: ErrorBudget, target: Target
) -> BudgetComparison:
    """The comparison for networks in short floats.

    Args:
        mod: the network in float32, optimised.
        original: the comparison with the model in its framework. Without one, the network in
            float32 computes the expected results on random inputs.
        budget: how far results may be apart.
        target: of the networks.
    """
    if original is not None:
        sets, checks = original.sets, original.checks
        return BudgetComparison(original.framework, sets, budget, target, checks)
    compiled = compile_model(with_plain_loops(mod), check_target(target), running_threads())
    arrays = random_inputs(compiled.inputs)
    inputs = InputSet("random inputs", tuple(arrays), tuple(outputs_of(compiled, arrays)))
    return BudgetComparison(OWN, [inputs], budget, target)
