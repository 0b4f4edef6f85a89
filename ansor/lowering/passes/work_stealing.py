"""Parallel loops with work stealing.

TVM gives each core an equal, contiguous share of the iterations in advance. All cores then
wait for a core with other work or a slower clock. Here each core works through its share in a few
pieces, and then takes pieces of other shares. See Blumofe and Leiserson, "Scheduling Multithreaded
Computations by Work Stealing", 1999. Each core keeps the same share in all functions, so that it
mostly reads the data that it has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlockRealize
from tvm.s_tir.transform import CanonicalizeLoop

from ansor.config import WORK_STEALING
from ansor.lowering.statements import with_body, with_llvm, with_loop_body, with_statement

_CLAIM = "ansor_claim"
# Whether the caller is the first to ask for this piece. Other cores read the results only after the
# loop, where all cores synchronise: the order of memory accesses does not matter here.
_CLAIM_IR = f"""
define linkonce_odr i32 @{_CLAIM}(ptr %claimed) alwaysinline nounwind {{
  %seen = load atomic i32, ptr %claimed monotonic, align 4
  %free = icmp eq i32 %seen, 0
  br i1 %free, label %ask, label %late
ask:
  %before = atomicrmw xchg ptr %claimed, i32 1 monotonic
  %first = icmp eq i32 %before, 0
  %answer = zext i1 %first to i32
  ret i32 %answer
late:
  ret i32 0
}}
"""


def steal_work(mod: tvm.IRModule, cores: int) -> tvm.IRModule:
    """The module with the iterations of its parallel loops divided among cores that steal work.

    All loops begin at zero except the new ones. TVM's `CanonicalizeLoop` need not rewrite these.
    """
    mod = CanonicalizeLoop()(mod)
    if cores < 2:
        return mod
    functions = {variable: _shared(func, cores) for variable, func in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _shared(func: Any, cores: int) -> Any:
    if not isinstance(func, tirx.PrimFunc) or not isinstance(func.body, SBlockRealize):
        return func
    sharing = _Sharing(cores)
    root = sharing.rewritten(func.body)
    if not sharing.is_used:
        return func
    return func.with_body(with_llvm(root, _CLAIM_IR, [sharing.claimed]))


class _Sharing:
    """The parallel loops of a function, which share one buffer in turn.

    Attributes:
        claimed: for each piece, whether a core has taken it.
        is_used: whether any loop has been rewritten.
    """

    def __init__(self, cores: int) -> None:
        self.cores, self.is_used = cores, False
        most = cores * WORK_STEALING.max_pieces
        self.claimed = tirx.decl_buffer((most,), "int32", name="claimed")

    def rewritten(self, stmt: Any) -> Any:
        """A statement with work stealing in its parallel loops."""
        if isinstance(stmt, tirx.SeqStmt):
            return tirx.SeqStmt([self.rewritten(child) for child in stmt.seq])
        if isinstance(stmt, tirx.AttrStmt):
            return with_statement(stmt, self.rewritten(stmt.body))
        if isinstance(stmt, SBlockRealize):
            block = with_body(stmt.block, self.rewritten(stmt.block.body))
            return SBlockRealize(stmt.iter_values, stmt.predicate, block)
        if not isinstance(stmt, tirx.For):
            return stmt
        if stmt.kind == tirx.ForKind.PARALLEL:
            return self._loop(stmt)
        return with_loop_body(stmt, self.rewritten(stmt.body))

    def _loop(self, loop: Any) -> Any:
        """The loop as pieces that cores claim; each core begins with its own share."""
        extent, dtype = int(loop.extent), str(loop.loop_var.ty.dtype)
        pieces = num_pieces(extent, self.cores)
        if pieces <= self.cores:
            return loop
        self.is_used = True
        core, turn, cleared = (tirx.Var(name, dtype) for name in ("core", "turn", "cleared"))
        number = tirx.floormod(core * (pieces // self.cores) + turn, pieces)
        length = tirx.const(extent // pieces, dtype)
        body = _annotated(loop.annotations, loop.body)
        # The loop's variable does not begin at zero. If its start was substituted into every index,
        # simplification would take TVM twice the time.
        piece = tirx.For(loop.loop_var, number * length, length, tirx.ForKind.SERIAL, body)
        place = tirx.address_of(tirx.BufferLoad(self.claimed, [number]))
        is_first = tirx.call_extern("int32", _CLAIM, place) == _int32(1)
        turns = _serial(turn, pieces, tirx.IfThenElse(is_first, piece, None))
        zero, count = (tirx.const(value, dtype) for value in (0, self.cores))
        clear = tirx.BufferStore(self.claimed, _int32(0), [cleared])
        return tirx.SeqStmt(
            [
                _serial(cleared, pieces, clear),
                tirx.For(core, zero, count, tirx.ForKind.PARALLEL, turns),
            ]
        )


def num_pieces(extent: int, cores: int) -> int:
    """The largest allowed number of equal pieces of a loop."""
    most = cores * WORK_STEALING.max_pieces
    return max(n for n in range(1, min(extent, most) + 1) if extent % n == 0)


def _annotated(annotations: Mapping[str, Any], body: Any) -> Any:
    """The body under the pragmas of its loop."""
    for name, value in annotations.items():
        body = tirx.AttrStmt(_int32(0), name, value, body)
    return body


def _serial(variable: Any, extent: int, body: Any) -> Any:
    zero, count = (tirx.const(value, str(variable.ty.dtype)) for value in (0, extent))
    return tirx.For(variable, zero, count, tirx.ForKind.SERIAL, body)


def _int32(value: int) -> Any:
    return tirx.const(value, "int32")
