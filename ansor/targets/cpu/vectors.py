"""The vector unit of a CPU target, from the features that LLVM reports for it."""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm.target import codegen


@dataclass(frozen=True)
class VectorUnit:
    """Width of a vector register in bytes, and the number of registers."""

    bytes: int
    registers: int


# The first entry whose feature the target has; the widest first.
_UNITS = (
    ("avx512f", VectorUnit(64, 32)),
    ("avx", VectorUnit(32, 16)),
    ("neon", VectorUnit(16, 32)),
    ("sse2", VectorUnit(16, 16)),
)
_SCALAR = VectorUnit(4, 16)


def vector_unit(target: tvm.target.Target) -> VectorUnit:
    """The widest vector unit of `target`; one fp32 element if none is known."""
    for feature, unit in _UNITS:
        if codegen.llvm_cpu_has_features(feature, target):
            return unit
    return _SCALAR
