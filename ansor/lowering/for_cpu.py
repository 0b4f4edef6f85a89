"""Rewrites of every function before it is compiled for a CPU: of candidates and of networks."""

from __future__ import annotations

import tvm

from ansor.lowering.passes.dot_products import issue_dot_products
from ansor.lowering.passes.whole_vectors import whole_vectors
from ansor.lowering.passes.work_stealing import steal_work
from ansor.lowering.pipeline import without_variables
from ansor.targets.cpu.vectors import vector_unit
from ansor.targets.host.threads import running_threads


def for_plain_tvm(
    mod: tvm.IRModule, target: tvm.target.Target, threads: int | None = None
) -> tvm.IRModule:
    """The module of `for_cpu`, so far that TVM's default pipeline compiles it nearly the same.

    Args:
        threads: as for `for_cpu`.
    """
    with target:
        return without_variables(for_cpu(mod, target, threads))


def for_cpu(
    mod: tvm.IRModule, target: tvm.target.Target, threads: int | None = None
) -> tvm.IRModule:
    """The module with work stealing in its parallel loops, and vectors cut to registers.

    Args:
        threads: that its loops will run on; by default the threads of this process.
    """
    register_bytes = vector_unit(target).bytes
    shared = steal_work(mod, threads or running_threads())
    return whole_vectors(issue_dot_products(shared, target, register_bytes), register_bytes)
