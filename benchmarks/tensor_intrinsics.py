"""Spares MetaSchedule what it would read of other processors.

Each of its processes that tunes or builds parses the tensor intrinsics of all targets, CUDA's
variants by the hundred, in Python. That is most of a minute of a slow core: longer than the 30 s
that its builders have, so that nothing would ever be built.
"""

from __future__ import annotations

import platform
import sys
from types import ModuleType

_PACKAGE = "tvm.s_tir.tensor_intrin"
_MODULES = ("cuda", "arm_cpu", "x86", "rocm", "hexagon", "riscv_cpu")
_OF_PROCESSOR = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm_cpu", "arm64": "arm_cpu"}


def leave_out_others() -> None:
    """For a tuning on this machine's CPU; the intrinsics of an unknown processor all stay."""
    own = _OF_PROCESSOR.get(platform.machine())
    for module in _MODULES if own else ():
        if module != own:
            name = f"{_PACKAGE}.{module}"
            sys.modules.setdefault(name, ModuleType(name))
