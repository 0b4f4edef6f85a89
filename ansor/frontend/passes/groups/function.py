"""Pads the operands of a function's products with zeros at their ends.

Known values of parameters get the zeros before compilation. A stage that computes an operand
element by element also writes its zeros. Other operands are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize

from ansor.dag.dot_products import operand_dtypes
from ansor.dag.from_tir.read import buffer_names, read_dag
from ansor.dag.graph import ComputeDAG
from ansor.dag.unfilled_groups import UnfilledGroups, may_be_lengthened, unfilled_groups
from ansor.frontend.passes.groups.nests import with_buffers, with_extent, zero_behind
from ansor.frontend.precision.conversion import converting_nest
from ansor.lowering.statements import nests_of, sequence

GroupSize = Callable[[tuple[str, str, str]], int | None]  # of the dtypes of operands and sum


def in_whole_groups(
    func: tirx.PrimFunc, constants: Collection[int], group_size: GroupSize
) -> tirx.PrimFunc:
    """The function with reductions of whole groups; itself if it has no others.

    Args:
        func: a compute definition, not scheduled.
        constants: positions of the parameters that may become longer.
        group_size: elements of a group for the dtypes of operands and sum; None without an
            instruction.

    Raises:
        UnsupportedError: the function is no plain definition.
    """
    dag = read_dag(func, constants)
    for name in tuple(dag.stages):
        groups = _unfilled(dag, name, group_size)
        if groups is None:
            continue
        func = _with_copies(func, dag, groups)
        dag = read_dag(func, constants)
        groups = _unfilled(dag, name, group_size)
        assert groups is not None
        func = _filled(func, dag, groups)
        dag = read_dag(func, constants)
    return func


def _unfilled(dag: ComputeDAG, name: str, group_size: GroupSize) -> UnfilledGroups | None:
    dtypes = operand_dtypes(dag, name)
    elements = None if dtypes is None else group_size(dtypes)
    return None if elements is None else unfilled_groups(dag, name, elements)


def _with_copies(func: tirx.PrimFunc, dag: ComputeDAG, groups: UnfilledGroups) -> tirx.PrimFunc:
    """The function with copies of the operands that cannot become longer themselves."""
    fixed = [name for name in groups.dims if not _may_grow(dag, name)]
    copies = {
        buffer: tirx.decl_buffer(buffer.shape, str(buffer.dtype), f"{name}_groups", layout=None)
        for buffer, name in buffer_names(func).items()
        if name in fixed
    }
    nests = []
    for stage, nest in _stages(func, dag):
        if stage == groups.stage:
            nests += [converting_nest(old, new, str(new.name)) for old, new in copies.items()]
        nests.append(with_buffers(nest, copies) if stage == groups.stage else nest)
    return _with_nests(func, nests, [*func.body.block.alloc_buffers, *copies.values()])


def _may_grow(dag: ComputeDAG, buffer: str) -> bool:
    readers = [s for s in dag.stages.values() if any(r.buffer == buffer for r in s.reads)]
    is_weight = dag.buffers[buffer].constant and len(readers) == 1
    return is_weight or may_be_lengthened(dag, buffer)


def _filled(func: tirx.PrimFunc, dag: ComputeDAG, groups: UnfilledGroups) -> tirx.PrimFunc:
    """The function with a longer reduction, and with operands padded with zeros at their ends."""
    longer = {
        buffer: _longer(buffer, groups.dims[name], groups.size)
        for buffer, name in buffer_names(func).items()
        if name in groups.dims
    }
    nests = []
    for stage, nest in _stages(func, dag):
        output = dag.stages[stage].output
        if stage == groups.stage:
            nest = with_extent(nest, groups.axis, groups.size)
        elif output in groups.dims:
            dim = groups.dims[output]
            nest = with_extent(zero_behind(nest, dim), dim, groups.size)
        nests.append(with_buffers(nest, longer))
    allocated = [longer.get(buffer, buffer) for buffer in func.body.block.alloc_buffers]
    changed = _with_nests(func, nests, allocated)
    params = [longer.get(param, param) for param in func.params]
    return tirx.PrimFunc(params, changed.body, func.ret_type, func.attrs)


def _stages(func: tirx.PrimFunc, dag: ComputeDAG) -> Iterator[tuple[str, Any]]:
    """The names of the stages, with their nests of loops."""
    return zip(dag.stages, nests_of(func), strict=True)


def _longer(buffer: Any, dim: int, size: int) -> Any:
    shape = list(buffer.shape)
    shape[dim] = tirx.const(size, str(shape[dim].ty.dtype))
    return tirx.decl_buffer(shape, str(buffer.dtype), str(buffer.name), layout=None)


def _with_nests(func: tirx.PrimFunc, nests: list[Any], allocated: list[Any]) -> tirx.PrimFunc:
    root = func.body.block
    block = SBlock([], [], [], root.name_hint, sequence(*nests), None, allocated)
    return func.with_body(SBlockRealize([], True, block))
