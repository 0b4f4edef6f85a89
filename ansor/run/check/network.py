"""Compares networks with their originals: the import before the search, the result after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm.target import Target

from ansor.config import CHECK
from ansor.errors import UnsupportedError, UserError
from ansor.frontend.deploy.assembly import apply_programs
from ansor.frontend.deploy.runtime import CompiledModel, compile_model
from ansor.frontend.deploy.saved_notes import known_fields
from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.importers.source import SourceModel
from ansor.frontend.optimization import optimize
from ansor.lowering.reference import reference_of
from ansor.run.check.compare import NETWORK_TOLERANCE, SAME, Difference, difference
from ansor.run.check.deviation import Deviation
from ansor.run.check.input_sets import InputSet, input_sets
from ansor.run.check.locate import Fault, first_failure, first_fault
from ansor.targets.host.threads import running_threads
from ansor.targets.registry import backend_of
from ansor.targets.target import NATIVE, resolve_target, runs_here

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class NetworkCheck:
    """The comparison of a network with its original.

    Attributes:
        stage: "import", or "tuned network".
        framework: that ran the original.
        sets: names of the input sets.
        difference: largest error, relative to the largest value of its output.
        elapsed_s: seconds that the comparison took.
        deviation: of a network in short floats.
        limit: its error budget.
    """

    stage: str
    framework: str
    sets: tuple[str, ...]
    difference: float
    elapsed_s: float
    deviation: Deviation | None = None
    limit: float | None = None

    @property
    def error(self) -> float:
        """The error that a budget limits; 0 without a budget."""
        return 0.0 if self.deviation is None else self.deviation.error

    @property
    def is_within(self) -> bool:
        """Whether the error is within its budget, if there is one."""
        return self.limit is None or self.error <= self.limit

    @property
    def text(self) -> str:
        """The outcome in one line."""
        if self.deviation is not None:
            return (
                f"{self.stage}: against {self.framework} on {', '.join(self.sets)}: error "
                f"{self.deviation.error:.1e} of a budget of {self.limit:.1e}; {self.deviation.text}"
            )
        return (
            f"{self.stage}: as {self.framework} on {', '.join(self.sets)}; largest difference "
            f"{self.difference:.1e} of the largest value, checked in {self.elapsed_s:.1f} s"
        )


def check_from_json(data: Mapping[str, Any]) -> NetworkCheck:
    """Inverse of `dataclasses.asdict`, after a way through JSON."""
    found = data.get("deviation")
    deviation = None if found is None else known_fields(Deviation, found)
    return known_fields(NetworkCheck, {**data, "sets": tuple(data["sets"]), "deviation": deviation})


class ResultError(UserError):
    """The results of a tuned network differ from the original model's."""


class SourceComparison:
    """Compares networks with one original, on the same inputs.

    Args:
        source: the model in its framework.
        target: of the networks.
    """

    def __init__(self, source: SourceModel, target: Target) -> None:
        self._source = source
        self._target = check_target(target)
        self.sets: list[InputSet] = []  # after the check of the import
        self._flips = False  # whether rounding flips steps of the network's own rounding
        self.checks: list[NetworkCheck] = []  # the comparisons so far

    @property
    def framework(self) -> str:
        """Name of the framework of the original."""
        return self._source.framework

    def check_import(self, mod: tvm.IRModule) -> None:
        """Compares the imported and optimised network, before it is tuned.

        Raises:
            UnsupportedError: the network differs; names the first operator that does.
        """
        began = time.monotonic()
        with np.errstate(all="ignore"):
            self.sets = list(input_sets(self._source))
            compiled = compile_model(with_plain_loops(mod), self._target, running_threads())
            self._note("import", compiled, began, self._refuse_import)

    def check_tuned(self, compiled: CompiledModel) -> None:
        """Compares the tuned network.

        Raises:
            ResultError: it differs.
        """
        with np.errstate(all="ignore"):
            self._note("tuned network", compiled, time.monotonic(), self._refuse_tuned)

    def _note(
        self,
        stage: str,
        compiled: CompiledModel,
        began: float,
        refuse: Callable[[InputSet, Difference], None],
    ) -> None:
        worst = SAME
        for inputs in self.sets:
            found = self._compared(compiled, inputs)
            if found.excess > 1:
                refuse(inputs, found)
            worst = max(worst, found, key=lambda one: one.relative)
        names = tuple(inputs.name for inputs in self.sets)
        elapsed_s = time.monotonic() - began
        check = NetworkCheck(stage, self._source.framework, names, worst.relative, elapsed_s)
        self.checks.append(check)

    def _refuse_tuned(self, inputs: InputSet, found: Difference) -> None:
        if self._flips and found.excess <= self._flipped(inputs):
            return
        raise ResultError(
            f"the tuned network differs from {self._source.framework} "
            f"on {inputs.name}: {found.text}",
            "please report it, with the model",
        )

    def _compared(self, compiled: CompiledModel, inputs: InputSet) -> Difference:
        """The difference, in units of the limit from rounding in this network."""
        found = difference(outputs_of(compiled, inputs.arrays), inputs.results, NETWORK_TOLERANCE)
        if found.excess <= 1:
            return found
        allowed = self._amplified(inputs, CHECK.step)
        return Difference(found.relative, found.excess / max(1.0, allowed), found.text)

    def _amplified(self, inputs: InputSet, step: float) -> float:
        """Change of the original's results with rounding of its inputs, in units of the limit."""
        moved = [_moved(array, step) for array in inputs.arrays]
        results = self._source.run(moved)
        return CHECK.max_amplified * difference(results, inputs.results, NETWORK_TOLERANCE).excess

    def _flipped(self, inputs: InputSet) -> float:
        """The limit of the difference if each operator alone is right."""
        return max(self._amplified(inputs, step) for step in CHECK.flipping_steps)

    def _refuse_import(self, inputs: InputSet, found: Difference) -> None:
        """Raises UnsupportedError, unless each operator is right and rounding explains the rest."""
        fault = first_fault(self._source, inputs.arrays, self._run_alone)
        if fault is None and found.excess <= self._flipped(inputs):
            self._flips = True
            return
        what = str(fault) if fault else f"each operator is right alone, but together {found.text}"
        raise UnsupportedError(
            f"the import differs from {self._source.framework} on {inputs.name}: {what}",
            "export the model without it, or pass check_import=False at your own risk",
        )

    def _run_alone(self, mod: tvm.IRModule, arrays: Sequence[Array]) -> list[Array]:
        optimized = with_plain_loops(optimize(mod, self._target))
        compiled = compile_model(optimized, self._target, running_threads())
        return outputs_of(compiled, arrays)


def uncompilable(source: SourceModel, target: Target) -> Fault | None:
    """The first operator of a model that cannot be compiled alone; None if all can."""

    here = check_target(target)

    def compile_only(mod: tvm.IRModule) -> None:
        compile_model(with_plain_loops(optimize(mod, target)), here, running_threads())

    with np.errstate(all="ignore"):
        for inputs in input_sets(source):
            return first_failure(source, inputs.arrays, compile_only)
    return None


def with_plain_loops(mod: tvm.IRModule) -> tvm.IRModule:
    """An optimised network with loops in an order that compilers can use."""
    ordered = {}
    for function in extract_functions(mod):
        try:
            ordered[function.name] = reference_of(function.func).func
        except UnsupportedError:  # no nest of loops, such as a call of TVM's runtime: no change
            continue
    return apply_programs(mod, ordered)


def check_target(target: Target) -> Target:
    """The target that networks are compared on: this machine for a GPU's or another machine's."""
    is_here = backend_of(target).execution.on_host and runs_here(target)
    return target if is_here else resolve_target(NATIVE)


def outputs_of(compiled: CompiledModel, arrays: Sequence[Array]) -> list[Array]:
    """The outputs of a network in a row."""
    result = compiled(*arrays)
    return list(result) if isinstance(result, tuple) else [result]


def _moved(array: Array, step: float) -> Array:
    """Floats a little larger or smaller; other values as they are."""
    if array.dtype.kind != "f":
        return array
    step = max(step, float(np.finfo(array.dtype).eps))
    signs = np.where(np.arange(array.size).reshape(array.shape) % 2, 1.0, -1.0)
    moved: Array = (array * (1 + step * signs)).astype(array.dtype)
    return moved
