"""Definitions in the form that the package reads: every axis has a loop, and no reduction is
empty."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize

from ansor.dag.from_tir.read import REDUCE, SPATIAL, is_literal
from ansor.lowering.statements import with_body


def plain_definition(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """An equal definition that can be scheduled in more cases.

    - A reduction over nothing becomes its initial value. Otherwise lowering removes the loop
      without iterations, and the initial value with it.
    - TE gives a tensor of no dimensions a block whose only axis has no loop. It gets one.
    """
    root = func.body
    if not isinstance(root, SBlockRealize):
        return func
    body = _plain(root.block.body, [])
    block = with_body(root.block, body)
    return func.with_body(SBlockRealize(root.iter_values, root.predicate, block))


def without_empty_reductions(mod: tvm.IRModule) -> tvm.IRModule:
    """The module with empty reductions replaced by their initial values."""
    changed = {
        variable: plain_definition(function)
        for variable, function in mod.functions.items()
        if isinstance(function, tirx.PrimFunc) and _has_empty_loop(function)
    }
    if not changed:
        return mod
    result = tvm.IRModule(dict(mod.functions), mod.attrs)
    for variable, function in changed.items():
        result.update_func(result.get_global_var(variable.name_hint), function)
    return result


def _has_empty_loop(func: tirx.PrimFunc) -> bool:
    root = func.body
    return isinstance(root, SBlockRealize) and _empty_within(root.block.body)


def _empty_within(stmt: Any) -> bool:
    if isinstance(stmt, tirx.SeqStmt):
        return any(_empty_within(child) for child in stmt.seq)
    return isinstance(stmt, tirx.For) and (is_literal(stmt.extent, 0) or _empty_within(stmt.body))


def _plain(stmt: Any, loops: list[Any]) -> Any:
    """The statement, with `loops` around each block of it."""
    if isinstance(stmt, tirx.SeqStmt) and not loops:
        return tirx.SeqStmt([_plain(child, []) for child in stmt.seq])
    if isinstance(stmt, tirx.For):
        return _plain(stmt.body, [*loops, stmt])
    if isinstance(stmt, SBlockRealize):
        return _plain_block(stmt, loops)
    return _wrapped(stmt, loops)


def _plain_block(realize: Any, loops: list[Any]) -> Any:
    block = realize.block
    if not loops and len(block.iter_vars) == 1 and is_literal(block.iter_vars[0].dom.extent, 1):
        axis = tirx.Var("i", block.iter_vars[0].var.ty)
        looped = SBlockRealize([axis], realize.predicate, block)
        return tirx.For(axis, 0, 1, tirx.ForKind.SERIAL, looped)
    reduced = [axis for axis in block.iter_vars if int(axis.iter_type) == REDUCE]
    if block.init is None or not any(is_literal(axis.dom.extent, 0) for axis in reduced):
        return _wrapped(realize, loops)
    return _initial(realize, loops)


def _initial(realize: Any, loops: list[Any]) -> Any:
    """A block that stores the initial value of a reduction."""
    block = realize.block
    kept = [
        (axis, value)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if int(axis.iter_type) != REDUCE
    ]
    if not kept:
        number = tirx.Var("i", "int32")
        axis = tirx.IterVar(ir.Range(0, 1), tirx.Var("v_i", "int32"), SPATIAL)
        kept = [(axis, number)]
        loops = [tirx.For(number, 0, 1, tirx.ForKind.SERIAL, realize)]
    plain = SBlock(
        [axis for axis, _ in kept], [], block.writes, block.name_hint, block.init, None, [], []
    )
    used = [loop for loop in loops if any(loop.loop_var.same_as(value) for _, value in kept)]
    return _wrapped(SBlockRealize([value for _, value in kept], realize.predicate, plain), used)


def _wrapped(stmt: Any, loops: list[Any]) -> Any:
    for loop in reversed(loops):
        stmt = tirx.For(
            loop.loop_var,
            loop.min,
            loop.extent,
            loop.kind,
            stmt,
            loop.thread_binding,
            loop.annotations,
        )
    return stmt
