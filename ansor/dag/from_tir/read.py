"""Reads a TensorIR `PrimFunc` into a `ComputeDAG`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import is_buffer_var

from ansor.dag.from_tir.expression import Reader
from ansor.dag.from_tir.narrow import narrow_parameters
from ansor.dag.from_tir.zeros import Nonzero, density, nonzero
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access, Axis, Buffer, Stage
from ansor.errors import UnsupportedError

# A remedy: only a definition without a schedule can be read.
_PLAIN = "give a definition with a plain nest of loops around each block, such as TE tensors"

SPATIAL, REDUCE = tirx.IterVar.DataPar, tirx.IterVar.CommReduce


def read_dag(func: tirx.PrimFunc, constants: Collection[int] = ()) -> ComputeDAG:
    """Returns the graph of `func`.

    Args:
        func: a compute definition, not scheduled.
        constants: positions of the parameters whose values are known at compile time.

    Raises:
        UnsupportedError: a block is opaque, its loops are dynamic or not a plain nest, it updates a
            buffer in place, or two blocks write one buffer. The message names the block and the
            reason.
    """
    _check_params(func)
    names = buffer_names(func)
    blocks = list(_blocks(func))
    _check_unique(blocks)
    stages = [_read_stage(realize, loops, names) for realize, loops in blocks]
    _check_writers(stages)
    return ComputeDAG(stages, _buffers(func, stages, names, constants))


def block_names(func: tirx.PrimFunc) -> list[str]:
    """Names of the blocks under the root, in order."""
    return [str(realize.block.name_hint) for realize, _ in _blocks(func)]


def written_params(func: tirx.PrimFunc) -> frozenset[int]:
    """Positions of the parameters that blocks under the root write."""
    written = [write.source for realize, _ in _blocks(func) for write in realize.block.writes]
    return frozenset(
        i for i, param in enumerate(func.params) if any(param.same_as(w) for w in written)
    )


def _check_params(func: tirx.PrimFunc) -> None:
    for param in func.params:
        if not is_buffer_var(param):
            raise UnsupportedError(
                f"parameter {param} is a scalar", "write its value into the function"
            )


def _blocks(func: tirx.PrimFunc) -> Iterator[tuple[Any, list[Any]]]:
    """Yields each block under the root with the loops around it."""
    body = func.body
    if not isinstance(body, SBlockRealize):
        raise UnsupportedError("the PrimFunc has no root block: it is already lowered", _PLAIN)
    yield from _walk(body.block.body, [], str(body.block.name_hint))


def _walk(stmt: Any, loops: list[Any], root: str) -> Iterator[tuple[Any, list[Any]]]:
    if isinstance(stmt, tirx.SeqStmt):
        if loops:
            raise UnsupportedError(
                f"the loops over {loops[0].loop_var} hold several statements", _PLAIN
            )
        for child in stmt.seq:
            yield from _walk(child, loops, root)
    elif isinstance(stmt, tirx.For):
        yield from _walk(stmt.body, [*loops, stmt], root)
    elif isinstance(stmt, SBlockRealize):
        yield stmt, loops
    else:
        kind = type(stmt).__name__
        raise UnsupportedError(
            f"block {root} is opaque: it holds a {kind} where a block belongs", _PLAIN
        )


def _check_unique(blocks: list[tuple[Any, list[Any]]]) -> None:
    seen: set[str] = set()
    for realize, _ in blocks:
        name = str(realize.block.name_hint)
        if name in seen:
            raise UnsupportedError(f"two blocks are called {name}", "block names must be unique")
        seen.add(name)


def _check_writers(stages: list[Stage]) -> None:
    writer: dict[str, str] = {}
    for stage in stages:
        for buffer in {write.buffer for write in stage.writes}:
            if buffer in writer:
                raise UnsupportedError(
                    f"blocks {writer[buffer]} and {stage.name} both write {buffer}",
                    "let each block write a buffer of its own",
                )
            writer[buffer] = stage.name


def buffer_names(func: tirx.PrimFunc) -> dict[Any, str]:
    """A unique name for each buffer, by its data variable."""
    buffers = [*func.params, *func.body.block.alloc_buffers]
    names: dict[Any, str] = {}
    for buffer in buffers:
        name, i = str(buffer.name), 1
        while name in names.values():
            name, i = f"{buffer.name}_{i}", i + 1
        names[buffer] = name
    return names


def _buffers(
    func: tirx.PrimFunc, stages: list[Stage], names: dict[Any, str], constants: Collection[int]
) -> dict[str, Buffer]:
    written = {w.buffer for stage in stages for w in stage.writes}
    params = [names[buffer] for buffer in func.params]
    known = {params[position] for position in constants}
    narrow = {params[position] for position in narrow_parameters(func)}
    out = {}
    for buffer, name in names.items():
        shape = tuple(_static(size, f"buffer {name}") for size in buffer.shape)
        kind = "intermediate" if name not in params else "output" if name in written else "input"
        own = name in known, name in narrow
        out[name] = Buffer(name, shape, str(buffer.dtype), kind, *own)
    return out


def _read_stage(realize: Any, loops: list[Any], names: dict[Any, str]) -> Stage:
    block: SBlock = realize.block
    name = str(block.name_hint)
    axes = tuple(_read_axis(iter_var, name) for iter_var in block.iter_vars)
    _check_nest(realize, loops, name)
    reader = Reader(
        name, [iter_var.var for iter_var in block.iter_vars], [axis.size for axis in axes], names
    )
    for leaf in _leaves(block.body):
        if isinstance(leaf, tirx.Bind):
            reader.bind(leaf.var, leaf.value)
    stores = list(_stores(block.body, name))
    writes = tuple(reader.access(store.buffer, store.indices) for store in stores)
    for store in stores:
        reader.visit(store.value)
    own = {write.buffer for write in writes}
    reads = tuple(r for r in dict.fromkeys(reader.reads) if r.buffer not in own)
    _check_reads_itself(reader.reads, writes, name)
    if block.init is None:
        _check_in_place(reader.reads, own, name)
    init = "" if block.init is None else reader.init_text(_stores(block.init, name))
    body = "; ".join(reader.store_text(store) for store in stores)
    reducer = _reducer(stores) if block.init is not None else None
    found = nonzero(reader, stores[0].value) if len(stores) == 1 else Nonzero()
    is_constant = len(stores) == 1 and not reader.reads
    return Stage(
        name,
        axes,
        reads,
        writes,
        reader.ops,
        reader.has_branch,
        f"{init}{body}",
        reducer=reducer,
        nonzero=found.spans,
        masked=found.masked,
        density=density(reader, stores[0].value) if is_constant else 1.0,
    )


def _reducer(stores: list[Any]) -> str | None:
    """The operator of ``out = op(out, value)``, where it is commutative."""
    value = stores[0].value
    if len(stores) != 1 or not isinstance(value, tirx.Add | tirx.Mul | tirx.Max | tirx.Min):
        return None
    first = value.a
    own = isinstance(first, ir.TensorLoad) and first.source.same_as(stores[0].buffer)
    return type(value).__name__ if own else None


def _read_axis(iter_var: Any, block: str) -> Axis:
    kind = int(iter_var.iter_type)
    if kind not in (SPATIAL, REDUCE):
        raise UnsupportedError(f"block {block}: axis {iter_var.var} is opaque", _PLAIN)
    extent = _static(iter_var.dom.extent, f"block {block}, axis {iter_var.var}")
    return Axis(str(iter_var.var).removeprefix("v_"), extent, kind == REDUCE)


def _check_nest(realize: Any, loops: list[Any], name: str) -> None:
    loop_vars = [loop.loop_var for loop in loops]
    plain = len(loop_vars) == len(realize.iter_values) and all(
        value.same_as(var) for value, var in zip(realize.iter_values, loop_vars, strict=False)
    )
    if not plain:
        raise UnsupportedError(
            f"block {name}: its axes are not simply its loops in order (already scheduled?)", _PLAIN
        )
    for loop in loops:
        _static(loop.extent, f"block {name}, loop {loop.loop_var}")
        _check_loop(loop, name)
    if not is_literal(realize.predicate, 1):
        raise UnsupportedError(f"block {name}: runs only where {realize.predicate}", _PLAIN)


def _check_loop(loop: Any, block: str) -> None:
    if int(loop.kind) != tirx.ForKind.SERIAL:
        kind = tirx.ForKind(int(loop.kind)).name.lower()
        raise UnsupportedError(
            f"block {block}: its loop over {loop.loop_var} is {kind} (already scheduled?)", _PLAIN
        )
    if not is_literal(loop.min, 0):
        raise UnsupportedError(
            f"block {block}: its loop over {loop.loop_var} starts at {loop.min}, not at zero",
            _PLAIN,
        )


def is_literal(expr: Any, value: int) -> bool:
    """Whether an expression is just this integer."""
    return isinstance(expr, tirx.IntImm) and int(expr.value) == value


def _stores(stmt: Any, block: str) -> Iterator[Any]:
    """The stores of a block's body, which may bind variables but has no other statements."""
    for leaf in _leaves(stmt):
        if isinstance(leaf, tirx.BufferStore):
            yield leaf
        elif not isinstance(leaf, tirx.Bind):
            raise UnsupportedError(f"block {block}: its body holds a {type(leaf).__name__}", _PLAIN)


def _leaves(stmt: Any) -> Iterator[Any]:
    if isinstance(stmt, tirx.SeqStmt):
        for child in stmt.seq:
            yield from _leaves(child)
    else:
        yield stmt


def _check_reads_itself(reads: list[Access], writes: tuple[Access, ...], name: str) -> None:
    for read in reads:
        for write in writes:
            if read.buffer == write.buffer and read.indices != write.indices:
                raise UnsupportedError(
                    f"block {name}: reads {read.buffer} at another place than it writes (a scan)",
                    _PLAIN,
                )


def _check_in_place(reads: list[Access], own: set[str], name: str) -> None:
    for read in reads:
        if read.buffer in own:
            raise UnsupportedError(f"block {name}: updates {read.buffer} in place", _PLAIN)


def _static(value: Any, where: str) -> int:
    if not isinstance(value, tirx.IntImm):
        raise UnsupportedError(
            f"{where}: the extent {value} is not known at compile time",
            "give every dimension a size",
        )
    return int(value.value)
