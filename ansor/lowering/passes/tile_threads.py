"""The places where threads configure their tiles: once around all statements on tiles."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm_ffi import structural_map

from ansor.lowering.statements import collect, sequence, with_loop_body, with_statement

REGION = "ansor.tile_region"  # around statements on tiles; the value names the configuration
_END = "ansor_tile_release"


def configured(stmt: Any) -> Any:
    """A statement whose threads configure their tiles, and free them in the end.

    If a thread needs several configurations in turn, each one encloses all statements up to those
    that need another.
    """
    begins = _begins(stmt)
    if not begins:
        return stmt
    if len(begins) > 1 or _starts_threads(stmt):
        return _inside(stmt)
    (begin,) = begins
    return sequence(_call(begin), _without_regions(stmt), _call(_END))


def _inside(stmt: Any) -> Any:
    """`configured` for the statements inside a statement."""
    if isinstance(stmt, tirx.SeqStmt):
        return sequence(*(configured(child) for child in stmt.seq))
    if isinstance(stmt, tirx.For):
        return with_loop_body(stmt, configured(stmt.body))
    if isinstance(stmt, tirx.AttrStmt):
        return with_statement(stmt, configured(stmt.body))
    assert isinstance(stmt, tirx.IfThenElse)
    cases = (stmt.then_case, stmt.else_case)
    return tirx.IfThenElse(stmt.condition, *(c and configured(c) for c in cases))


def _begins(stmt: Any) -> set[str]:
    attributes = collect(stmt, tirx.AttrStmt)
    return {str(a.value.value) for a in attributes if a.attr_key == REGION}


def _starts_threads(stmt: Any) -> bool:
    """Whether threads begin inside a statement and use tiles."""
    loops = (x for x in collect(stmt, tirx.For) if x.kind == tirx.ForKind.PARALLEL)
    return any(_begins(loop.body) for loop in loops)


def _without_regions(stmt: Any) -> Any:
    def unmarked(attribute: tirx.AttrStmt) -> Any:
        return attribute.body if attribute.attr_key == REGION else attribute

    return structural_map(stmt, (tirx.AttrStmt, unmarked))


def _call(name: str) -> Any:
    return tirx.Evaluate(tirx.call_extern("void", name))
