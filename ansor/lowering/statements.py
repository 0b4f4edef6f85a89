"""Small functions to rewrite scheduled statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi import structural_map, structural_walk


def with_body(block: SBlock, body: Any) -> SBlock:
    """The block around other statements."""
    parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
    return SBlock(*parts, block.alloc_buffers, block.match_buffers, block.annotations)


def with_llvm(realize: SBlockRealize, code: str, buffers: Sequence[Any] = ()) -> SBlockRealize:
    """A function's outermost block with definitions of functions in LLVM's language.

    Args:
        buffers: that are allocated there, too.
    """
    block, zero = realize.block, tirx.const(0, "int32")
    body = tirx.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(code), block.body)
    parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
    allocated = [*block.alloc_buffers, *buffers]
    changed = SBlock(*parts, allocated, block.match_buffers, block.annotations)
    return SBlockRealize(realize.iter_values, realize.predicate, changed)


def with_loop_body(loop: Any, body: Any) -> Any:
    """The loop around another statement."""
    head = (loop.loop_var, loop.min, loop.extent, loop.kind)
    return tirx.For(*head, body, loop.thread_binding, loop.annotations, loop.step)


def sequence(*stmts: Any) -> Any:
    """A sequence of statements; nested sequences are flattened, as TVM requires."""
    parts = [x for s in stmts for x in (s.seq if isinstance(s, tirx.SeqStmt) else [s])]
    return parts[0] if len(parts) == 1 else tirx.SeqStmt(parts)


def nests_of(func: tirx.PrimFunc) -> list[Any]:
    """The statements under the root block, one for each stage of a compute definition."""
    body = func.body.block.body
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def with_statement(attribute: tirx.AttrStmt, body: Any) -> tirx.AttrStmt:
    """The attribute of another statement."""
    return tirx.AttrStmt(attribute.node, attribute.attr_key, attribute.value, body)


def replace_loops(stmt: Any, loops: Mapping[Any, int], made: Callable[[Any, int], Any]) -> Any:
    """`stmt` with the loops of the given variables replaced by `made(loop, number)`."""
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([replace_loops(child, loops, made) for child in stmt.seq])
    if isinstance(stmt, tirx.AttrStmt):
        return with_statement(stmt, replace_loops(stmt.body, loops, made))
    if isinstance(stmt, SBlockRealize):
        block = with_body(stmt.block, replace_loops(stmt.block.body, loops, made))
        return SBlockRealize(stmt.iter_values, stmt.predicate, block)
    if isinstance(stmt, tirx.For):
        for variable, number in loops.items():
            if stmt.loop_var.same_as(variable):
                return made(stmt, number)
        return with_loop_body(stmt, replace_loops(stmt.body, loops, made))
    return stmt


def substitute_variables(expr: Any, values: Mapping[Any, Any]) -> Any:
    """`expr` with variables replaced."""

    def replaced(variable: Any) -> Any:
        found = (value for key, value in values.items() if key.same_as(variable))
        return next(found, variable)

    return structural_map(expr, (tirx.Var, replaced)) if values else expr


def collect(root: Any, kind: type) -> list[Any]:
    """All nodes of a kind, children first."""
    found: list[Any] = []
    structural_walk(root, (kind, found.append), order="post")
    return found
