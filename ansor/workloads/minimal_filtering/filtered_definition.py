"""Convolutions of a compute definition, computed by minimal filtering from within.

Unlike in a network, nothing is known of the weights: they are transformed in every run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, count
from typing import Any

from tvm import te, tirx
from tvm.s_tir import SBlock, SBlockRealize

from ansor.dag.from_tir.read import block_names, buffer_names, read_dag
from ansor.dag.graph import ComputeDAG
from ansor.lowering.statements import nests_of, sequence, substitute_variables, with_loop_body
from ansor.workloads.minimal_filtering.convolution import Convolution, convolution_of
from ansor.workloads.minimal_filtering.convolution_roles import Layout
from ansor.workloads.minimal_filtering.stages import DepthForm, Form, filtered, joined
from ansor.workloads.minimal_filtering.transformed_weights import transformed
from ansor.workloads.minimal_filtering.transforms import Transform, is_nearly_whole

_DTYPE = "float32"


def with_filtering(func: tirx.PrimFunc, transforms: Collection[Transform]) -> tirx.PrimFunc:
    """`func` with every convolution that minimal filtering can compute computed by it.

    Those in float32 of images or volumes, with the kernel and the stride of a transform, whose
    output is nearly whole tiles, in any layout. Without any, it is `func` itself.

    Args:
        func: a compute definition, not scheduled.
        transforms: one for each kernel and stride, and for transposed convolutions.
    """
    dag = read_dag(func)
    for name in dag.order:
        found = convolution_of(dag, name)
        transform = None if found is None else _transform_for(dag, found, transforms)
        if found is not None and transform is not None:  # others have other names afterwards
            return with_filtering(_replaced(func, dag, found, transform), transforms)
    return func


def _transform_for(
    dag: ComputeDAG, conv: Convolution, transforms: Collection[Transform]
) -> Transform | None:
    """The one that computes a convolution; None where none does."""
    shape = dag.buffers[dag.stages[conv.stage].output].shape
    sides = [int(shape[dim]) for dim in conv.out_layout[-3:-1]]  # type: ignore[arg-type]
    usual = dag.buffers[conv.data].dtype == _DTYPE
    form = (conv.kernel, conv.stride, conv.dilation, conv.is_transposed)
    fitting = (t for t in transforms if t.computes(*form) and 1 in (conv.groups, t.phases))
    whole = (t for t in fitting if is_nearly_whole(sides, t, conv.dilation))
    return next((t for t in whole if usual), None)


def _replaced(
    func: tirx.PrimFunc, dag: ComputeDAG, conv: Convolution, transform: Transform
) -> tirx.PrimFunc:
    """`func` with other stages in place of a convolution's, and of its padding's, which no other
    stage reads."""
    own = {name: buffer for buffer, name in buffer_names(func).items()}
    data, weight, out = own[conv.data], own[conv.weight], own[dag.stages[conv.stage].output]
    made = _definition(data, weight, out, conv, transform)
    values = dict(zip(made.params, (data, weight, out), strict=True))
    inner = [substitute_variables(stmt, values) for stmt in nests_of(made)]
    gone, unused = {conv.stage}, []
    if conv.padded_by is not None and dag.consumers(conv.padded_by) == (conv.stage,):
        gone.add(conv.padded_by)
        unused.append(own[dag.stages[conv.padded_by].output])
    inner = _renamed(inner, set(block_names(func)) - gone)
    body = []
    for nest in nests_of(func):
        name = str(_block(nest).name_hint)
        body += inner if name == conv.stage else [] if name in gone else [nest]
    allocated = [b for b in func.body.block.alloc_buffers if not any(b.same_as(u) for u in unused)]
    return _with_root(func, sequence(*body), [*allocated, *made.body.block.alloc_buffers])


def _definition(
    data: Any, weight: Any, out: Any, conv: Convolution, transform: Transform
) -> tirx.PrimFunc:
    """The convolution as a separate function, with the layouts of these buffers."""
    images, kernels = (te.placeholder(b.shape, str(b.dtype), b.name) for b in (data, weight))
    last = _permuted(images, conv.data_layout, "images")
    inner = transformed(_permuted(kernels, conv.weight_layout, "weights"), transform)
    form = _form(conv, out)
    tiles, name = filtered(last, inner, transform, form), conv.stage
    if conv.out_layout == tuple(range(len(conv.out_layout))):
        result = joined(tiles, form, name)
    else:
        back = tuple(conv.out_layout.index(dim) for dim in range(len(conv.out_layout)))
        result = _permuted(joined(tiles, form, f"{name}_last"), back, name)
    return te.create_prim_func(
        [images, kernels, result], index_dtype_override=str(out.shape[0].ty.dtype)
    )


def _form(conv: Convolution, out: Any) -> Form:
    _, *depth, rows, columns, _ = (int(out.shape[dim]) for dim in conv.out_layout)
    along = None
    if conv.depth is not None:
        d = conv.depth
        along = DepthForm(depth[0], d.stride, d.dilation, d.padding[0])
    return Form(conv.padding[:2], (rows, columns), conv.groups, conv.dilation, along)


def _permuted(tensor: Any, layout: Layout, name: str) -> Any:
    """A tensor whose dimension i is dimension ``layout[i]`` of the given one."""
    if layout == tuple(range(len(layout))):
        return tensor
    where = [layout.index(dim) for dim in range(len(layout))]
    shape = [tensor.shape[dim] for dim in layout]
    return te.compute(shape, lambda *i: tensor(*(i[place] for place in where)), name=name)


def _block(nest: Any) -> SBlock:
    return _block(nest.body) if isinstance(nest, tirx.For) else nest.block


def _renamed(nests: Sequence[Any], taken: Collection[str]) -> list[Any]:
    """The nests with names for their blocks that are not taken."""
    used, out = set(taken), []
    for nest in nests:
        name = str(_block(nest).name_hint)
        own = next(n for n in chain([name], (f"{name}_{i}" for i in count(1))) if n not in used)
        used.add(own)
        out.append(_with_name(nest, own))
    return out


def _with_name(nest: Any, name: str) -> Any:
    if isinstance(nest, tirx.For):
        return with_loop_body(nest, _with_name(nest.body, name))
    b = nest.block
    block = SBlock(b.iter_vars, b.reads, b.writes, name, b.body, b.init)
    return SBlockRealize(nest.iter_values, nest.predicate, block)


def _with_root(func: tirx.PrimFunc, body: Any, allocated: Sequence[Any]) -> tirx.PrimFunc:
    """`func` with other nests and buffers."""
    root = func.body.block
    block = SBlock(
        root.iter_vars, root.reads, root.writes, root.name_hint, body, root.init, allocated
    )
    return func.with_body(SBlockRealize(func.body.iter_values, func.body.predicate, block))
