"""Prepares TVM's tensor intrinsics for MetaSchedule: spares it those of other processors, and
repairs the one for VNNI.

Each of its processes that tunes or builds parses the tensor intrinsics of all targets, CUDA's
variants by the hundred, in Python. That is most of a minute of a slow core: longer than the 30 s
that its builders have, so that nothing would ever be built.
"""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import TensorIntrin
from tvm_ffi import structural_map

_PACKAGE = "tvm.s_tir.tensor_intrin"
_MODULES = ("cuda", "arm_cpu", "x86", "rocm", "hexagon", "riscv_cpu")
_VNNI, _INSTRUCTION = "dot_16x4_vnni", "llvm.x86.avx512.vpdpbusd.512"
_OF_PROCESSOR = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm_cpu", "arm64": "arm_cpu"}


def leave_out_others() -> None:
    """For a tuning on this machine's CPU; the intrinsics of an unknown processor all stay."""
    own = _OF_PROCESSOR.get(platform.machine())
    for module in _MODULES if own else ():
        if module != own:
            name = f"{_PACKAGE}.{module}"
            sys.modules.setdefault(name, ModuleType(name))


def prepare_intrinsics() -> None:
    """For a tuning on this machine's CPU, in each of its processes."""
    leave_out_others()
    if _OF_PROCESSOR.get(platform.machine()) == "x86":
        repair_vnni()


def repair_vnni() -> None:
    """Registers TVM's intrinsic for VNNI anew, with operands that LLVM takes.

    TVM passes operands of type `int32x16` to `vpdpbusd`. LLVM 22 expects `int8x64` and refuses
    every program with them, and MetaSchedule uses the intrinsic on every processor with VNNI.
    """
    given = import_module(f"{_PACKAGE}.x86")
    implementation = given.dot_product_16x4_u8i8i32_vnni
    body = structural_map(implementation.body, (ir.Call, _with_bytes))
    repaired = implementation.with_body(body)
    TensorIntrin.register(_VNNI, given.dot_product_16x4_u8i8i32_desc, repaired, override=True)


def _with_bytes(call: Any) -> Any:
    """A call of LLVM's intrinsic with its factors as bytes; another call as it is."""
    if call.op.name != "tirx.call_llvm_pure_intrin":
        return call
    _, sums, *factors = call.args
    operands = (tirx.reinterpret("int8x64", factor) for factor in factors)
    return tirx.call_llvm_pure_intrin("int32x16", _INSTRUCTION, sums, *operands)
