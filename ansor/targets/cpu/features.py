"""Instruction sets that a target's code uses, and those of this processor."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import tvm
from tvm.target import codegen

from ansor.targets.host.tiles import why_no_tiles

# LLVM's names of instruction sets for ordinary code. Others are for operating systems, or describe
# what is fast.
_USED = re.compile(
    r"(sse|ssse|avx|amx|fma|f16c|bmi|lzcnt|popcnt|movbe|gfni|vaes|vpclmulqdq|xop|tbm|cmov|adx"
    r"|neon|fp-armv8|fullfp16|sve|sme|dotprod|bf16|i8mm|lse|rdm)"
)
CPUINFO = Path("/proc/cpuinfo")
# Linux' names of flags that LLVM calls otherwise, beyond separators.
_ALIASES = {"pni": "sse3", "bmi1": "bmi", "abm": "lzcnt"}
_ALIKE = {"amd64": "x86_64", "arm64": "aarch64"}


def architecture(target: tvm.target.Target) -> str:
    """The family of processors that a target's code is for, e.g. "x86_64"."""
    triple = str(target.attrs.get("mtriple", "")) or str(codegen.llvm_get_system_triple())
    name = triple.partition("-")[0]
    return _ALIKE.get(name, name)


def needed_features(target: tvm.target.Target) -> tuple[str, ...]:
    """Instruction sets that a target's code may use, by LLVM's names."""
    return tuple(sorted(name for name in map(str, _features(target)) if _USED.match(name)))


def _features(target: tvm.target.Target) -> Collection[str]:
    found: Collection[str] = codegen.llvm_get_cpu_features(target)
    return found


def features_here() -> frozenset[str]:
    """Instruction sets of this processor, by LLVM's names.

    LLVM detects them, or the operating system has a flag for them. Sets for tiles are missing if
    the system does not allow them."""
    found = _llvm_finds()
    flags = {_bare(_ALIASES.get(flag, flag)) for flag in _flags()}
    here = frozenset(name for name, has in found.items() if has or _bare(name) in flags)
    return here if why_no_tiles_here() is None else here - _tiled(here)


def why_no_tiles_here() -> str | None:
    """Why this process may not use the tiles of this processor; None if it may, or has none."""
    is_tiled = any(_is_tiled(flag) for flag in _flags())
    return why_no_tiles() if is_tiled else None


def _tiled(names: Collection[str]) -> frozenset[str]:
    return frozenset(filter(_is_tiled, names))


def _is_tiled(name: str) -> bool:
    return name.startswith("amx")


@cache
def _llvm_finds() -> Mapping[str, bool]:
    found = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    return {str(name): bool(has) for name, has in found.items()}


def _flags() -> frozenset[str]:
    """The flags of the first processor, as Linux reports them; none on other systems."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def _bare(name: str) -> str:
    """A name without the separators, in which Linux and LLVM differ."""
    return re.sub(r"[-_.]", "", name)


def unnamed_features(processor: str) -> tuple[str, ...]:
    """The instruction sets by which this processor differs from LLVM's model of it: "+NAME" for
    one that the model lacks, "-NAME" for one that only the model has.

    LLVM chooses the model by family and cache sizes. A processor in a virtual machine may have
    more or fewer instruction sets than the model.
    """
    model = set(needed_features(tvm.target.Target({"kind": "llvm", "mcpu": processor})))
    here = {name for name in features_here() if _USED.match(name)}
    missing, further = sorted(model - here), sorted(here - model)
    # LLVM reads the list in order, and a removed set takes those that need it with it.
    return (*(f"-{name}" for name in missing), *(f"+{name}" for name in further))


def why_not_here(family: str, features: Collection[str]) -> str | None:
    """Why this processor cannot run code of an architecture that uses these instruction sets."""
    here = platform.machine()
    here = _ALIKE.get(here, here)
    if family != here:
        return f"it is for {family} processors, this one is {here}"
    missing = sorted(set(features) - features_here())
    return f"it needs {', '.join(missing)}, which this processor lacks" if missing else None
