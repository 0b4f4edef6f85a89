"""Findings about the instruction sets that code for this processor uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ansor.diagnosis.finding import Finding, State
from ansor.targets.cpu.features import (
    architecture,
    features_here,
    needed_features,
    why_no_tiles_here,
    why_not_here,
)
from ansor.targets.target import Target


@dataclass(frozen=True)
class InstructionSet:
    """Instructions that programs use.

    Attributes:
        name: in the processor's manual.
        features: LLVM's names; one of them is enough.
        use: what programs do with it.
    """

    name: str
    features: tuple[str, ...]
    use: str


_X86 = (
    InstructionSet("AVX2", ("avx2",), "vectors of 256 bits, int8 by vpmaddubsw and vpmaddwd"),
    InstructionSet("FMA", ("fma",), "multiply-adds"),
    InstructionSet("AVX-512", ("avx512f",), "vectors of 512 bits"),
    InstructionSet("VNNI", ("avx512vnni", "avxvnni"), "int8 by vpdpbusd"),
    InstructionSet("BF16", ("avx512bf16",), "bfloat16 by vdpbf16ps"),
    InstructionSet("AMX-BF16", ("amx-bf16",), "tiles of bfloat16 by tdpbf16ps"),
    InstructionSet("AMX-INT8", ("amx-int8",), "tiles of int8 by tdpbusd"),
)
_ARM = (
    InstructionSet("NEON", ("neon",), "vectors of 128 bits"),
    InstructionSet("DotProd", ("dotprod",), "int8 by sdot and udot"),
    InstructionSet("I8MM", ("i8mm",), "int8 by usdot"),
    InstructionSet("BF16", ("bf16",), "bfloat16 by bfdot"),
)
_REMEDY = 'LLVM takes this processor for another one: name it as target="llvm -mcpu=..."'
_SETS = {"x86_64": _X86, "aarch64": _ARM}


def instruction_findings(target: Target) -> Iterator[Finding]:
    """The instruction sets of this processor, and what programs for the target use of them."""
    family, used = architecture(target), needed_features(target)
    for each in _SETS.get(family, ()):
        yield set_finding(each, features_here(), used)
    reason = why_not_here(family, used)
    if reason is not None:
        yield Finding("native target", reason, State.WRONG, _REMEDY)
    why_no_tiles = why_no_tiles_here()
    if why_no_tiles is not None:
        remedy = "use Linux 5.16 or later, outside sandboxes that refuse arch_prctl"
        yield Finding("AMX", f"the system refuses it: {why_no_tiles}", State.WRONG, remedy)


def set_finding(each: InstructionSet, here: Collection[str], used: Collection[str]) -> Finding:
    """One instruction set.

    Args:
        each: the set.
        here: features of the processor, as LLVM names them.
        used: features that programs for the target may use.
    """
    if not set(each.features) & set(here):
        return Finding(each.name, "the processor has none", State.NOTE)
    if not set(each.features) & set(used):
        return Finding(each.name, "the processor has it, programs do not", State.WRONG, _REMEDY)
    return Finding(each.name, each.use)
