"""The peak that an operator's rate is compared with: of float32, or of an instruction."""

from __future__ import annotations

from collections.abc import Callable

from ansor.targets.cpu.detect import peak_meter_here, read_system
from ansor.targets.cpu.probe.instruction_peak import (
    PeakInstruction,
    fastest_instruction,
    operations_meter,
)
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.target import resolve_target
from benchmarks.operator_case import Case

INSTRUCTION = "instruction"  # in what our own systems tell of themselves


def peak_instruction(case: Case) -> PeakInstruction | None:
    """The fastest instruction for the case's dtype here; None for float32, and where there is
    none."""
    return fastest_instruction(resolve_target(case.target), case.dtype)


def peak_meter(case: Case) -> Callable[[], float] | None:
    """Tells 10^9 operations per second of the case's threads at the moment; None where no
    instruction computes in the case's dtype."""
    target = resolve_target(case.target)
    if case.dtype == "float32":
        return peak_meter_here(target, case.threads)
    instruction = peak_instruction(case)
    if instruction is None:
        return None
    machine = read_system(target, case.threads)
    spec = Spec(case.target, case.threads, machine.vector_bytes, machine.cache_bytes)
    operations = operations_meter(instruction, spec)
    return lambda: operations() / 1e9
