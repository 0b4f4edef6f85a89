"""TVM's passes that compile scheduled functions for a CPU."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir.pipeline import finalize_device_passes, finalize_host_passes
from tvm.tirx import compilation_pipeline

from ansor.lowering.passes.bfloat16 import keep_bfloat16
from ansor.lowering.passes.fold_tables import fold_tables
from ansor.lowering.passes.nan_propagation import pass_nan
from ansor.lowering.passes.rounding import convert_rounded
from ansor.lowering.passes.tiles import issue_tiles
from ansor.lowering.passes.vector_operands import load_operands

CPU_PIPELINE = "ansor.cpu"  # name under which TVM finds it

_ISSUE_TILES = tirx.transform.prim_func_pass(
    lambda func, mod, context: issue_tiles(func), opt_level=0, name="ansor.IssueTiles"
)
_LOAD_OPERANDS = tirx.transform.prim_func_pass(
    lambda func, mod, context: load_operands(func), opt_level=0, name="ansor.LoadOperands"
)
_KEEP_BFLOAT16 = tirx.transform.prim_func_pass(
    lambda func, mod, context: keep_bfloat16(func), opt_level=0, name="ansor.KeepBFloat16"
)
_CONVERT_ROUNDED = tirx.transform.prim_func_pass(
    lambda func, mod, context: convert_rounded(func), opt_level=0, name="ansor.ConvertRounded"
)
_PASS_NAN = tirx.transform.prim_func_pass(
    lambda func, mod, context: pass_nan(func), opt_level=0, name="ansor.PassNaN"
)

# TVM's passes for schedules, in TVM's order. Passes for GPUs are left out. So are five passes that
# make loops begin at zero, or improve scheduled code no more than LLVM does. They take a tenth to a
# third of the time to compile.
_BEFORE = (
    s_tir.transform.LowerInitBlock,
    s_tir.transform.PlanAndUpdateBufferAllocationLocation,
    s_tir.transform.ConvertBlocksToOpaque,
    s_tir.transform.CompactBufferAllocation,
    s_tir.transform.LowerMatchBuffer,
)
_AFTER = (
    s_tir.transform.StmtSimplify,
    s_tir.transform.AnnotateIrregularLoop,
    s_tir.transform.LowerOpaqueBlock,
    tirx.transform.FlattenBuffer,
    lambda: tirx.transform.NarrowDataType(32),
    s_tir.transform.LoopPartition,
    tirx.transform.VectorizeLoop,
    lambda: _ISSUE_TILES,
    lambda: _LOAD_OPERANDS,
    lambda: _CONVERT_ROUNDED,
    lambda: _KEEP_BFLOAT16,
    tirx.transform.BF16ComputeLegalize,
    tirx.transform.StorageRewrite,
    tirx.transform.UnrollLoop,
    tirx.transform.StmtSimplify,
    s_tir.transform.RewriteUnsafeSelect,
    lambda: _PASS_NAN,
    tirx.transform.FP8ComputeLegalize,
    tirx.transform.VerifyMemory,
    tirx.transform.AnnotateEntryFunc,
    tirx.transform.SplitHostDevice,
    tirx.transform.MakePackedAPI,
    tirx.transform.FP8StorageLegalize,
    tirx.transform.BF16StorageLegalize,
)


_FOLD_TABLES = tirx.transform.prim_func_pass(
    lambda func, mod, context: fold_tables(func), opt_level=0, name="ansor.FoldTables"
)


def without_variables(mod: tvm.IRModule) -> tvm.IRModule:
    """The module after the first passes: blocks without variables, tables of constants folded.

    The passes of TVM's default pipeline have nothing to do up to here.
    """
    passes: Any = tvm.transform.Sequential([*(make() for make in _BEFORE), _FOLD_TABLES])
    return passes(mod)


def _cpu_pipeline() -> tuple[Any, Any, Any]:
    """The passes, and those that follow on the host and (never) on a device."""
    passes = [*(make() for make in _BEFORE), _FOLD_TABLES, *(make() for make in _AFTER)]
    return tvm.transform.Sequential(passes), finalize_host_passes, finalize_device_passes


compilation_pipeline.register_tir_pipeline(CPU_PIPELINE, _cpu_pipeline)
