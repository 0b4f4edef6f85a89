"""Instruction sets that a target's code uses, and those of this processor."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection
from functools import cache

import tvm
from tvm.target import codegen

# LLVM's names of what it uses unasked; others are for systems, or say what is fast.
_USED = re.compile(
    r"(sse|ssse|avx|amx|fma|f16c|bmi|lzcnt|popcnt|movbe|gfni|vaes|vpclmulqdq|xop|tbm|cmov|adx"
    r"|neon|fp-armv8|fullfp16|sve|sme|dotprod|bf16|i8mm|lse|rdm)"
)
_ALIKE = {"amd64": "x86_64", "arm64": "aarch64"}


def architecture(target: tvm.target.Target) -> str:
    """The family of processors that a target's code is for, e.g. "x86_64"."""
    triple = str(target.attrs.get("mtriple", "")) or str(codegen.llvm_get_system_triple())
    name = triple.partition("-")[0]
    return _ALIKE.get(name, name)


def needed_features(target: tvm.target.Target) -> tuple[str, ...]:
    """Instruction sets that a target's code may use, in LLVM's words."""
    return tuple(sorted(name for name in map(str, _features(target)) if _USED.match(name)))


def _features(target: tvm.target.Target) -> Collection[str]:
    found: Collection[str] = codegen.llvm_get_cpu_features(target)
    return found


@cache
def _features_here() -> frozenset[str]:
    found = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    return frozenset(str(name) for name, has in found.items() if has)


def why_not_here(family: str, features: Collection[str]) -> str | None:
    """Why this processor cannot run code of an architecture that uses these instruction sets."""
    here = platform.machine()
    here = _ALIKE.get(here, here)
    if family != here:
        return f"it is for {family} processors, this one is {here}"
    missing = sorted(set(features) - _features_here())
    return f"it needs {', '.join(missing)}, which this processor lacks" if missing else None
