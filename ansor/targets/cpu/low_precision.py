"""Instructions of processors for products of short numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tvm.target import Target, codegen

from ansor.program.dot_instructions import (
    DOT_INSTRUCTIONS,
    DotInstruction,
    instruction_named,
)
from ansor.program.tile_instructions import TILE_INSTRUCTIONS
from ansor.targets.cpu.features import architecture
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.probe.instruction_peak import PeakInstruction
from ansor.targets.cpu.probe.instruction_peak import instruction_named as peak_named

_BYTES = 4 + 2  # of an element in both dtypes
# By family and dtype: LLVM's names of the instruction sets with products, and Linux' names of them.
_PRODUCTS: Mapping[tuple[str, str], Mapping[str, str]] = MappingProxyType(
    {
        ("x86_64", "bfloat16"): {"avx512bf16": "avx512_bf16", "amx-bf16": "amx_bf16"},
        ("aarch64", "bfloat16"): {"bf16": "bf16"},
    }
)


def dot_instructions(target: Target) -> tuple[DotInstruction, ...]:
    """The instructions of a target that add up groups of products, in the table's order."""
    return tuple(each for each in DOT_INSTRUCTIONS if peak_of(each.name).is_available(target))


def peak_of(instruction: str) -> PeakInstruction:
    """The loop that measures the instruction of a unit, or an instruction of the same rate."""
    units = {each.name: each.unit for each in TILE_INSTRUCTIONS}
    return peak_named(units.get(instruction) or instruction_named(instruction).mnemonic)


def prefers_narrow_weights(target: Target) -> bool:
    """Whether the fastest instruction for `uint8` times `int8` requires weights of 7 bits."""
    dtypes = ("uint8", "int8", "int32")
    fitting = (each for each in dot_instructions(target) if each.takes(dtypes))
    return next((each.narrow for each in fitting), False)


def activations(target: Target) -> str | None:
    """The dtype that the fastest instruction multiplies by `int8`; None without an instruction."""
    for each in dot_instructions(target):
        left, right = each.operands
        if right == "int8":
            return left
    return None


def why_not_short(target: Target, dtype: str) -> str | None:
    """Why a target has no instruction for products of a dtype; None if it has one.

    The reason names the sufficient flags.
    """
    family = architecture(target)
    sets = _PRODUCTS.get((family, dtype))
    if sets is None:
        return f"no instruction for products in {dtype} is known of {family} processors"
    if any(codegen.llvm_cpu_has_features(name, target) for name in sets):
        return None
    flags = " or ".join(sets.values())
    return f"the processor has no instruction for products in {dtype}; it lacks the flag {flags}"


def conversion_s(machine: Hardware, elements: int) -> float:
    """Seconds to convert elements between float32 and a dtype of two bytes within a function.

    The values pass once through the last cache in both dtypes. This is an upper estimate, because
    a function may read or write them anyway.
    """
    bytes_per_s = machine.cache_bandwidth[1] * machine.frequency_hz * machine.cores
    return elements * _BYTES / bytes_per_s
