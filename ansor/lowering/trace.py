"""A program as a trace of TVM's schedule, which plain TVM prints, stores and replays.

A trace consists of primitives of the schedule. The rewrites of `after_scheduling` and the passes of
the compiler are no primitives. A trace leaves them out, and computes the same without them.
"""

from __future__ import annotations

import tvm
from tvm import s_tir, tirx

from ansor.errors import UnsupportedError
from ansor.lowering.lower import replayed
from ansor.lowering.replay import Replay
from ansor.program.hand_schedule import HandSchedule
from ansor.program.layout import PackedLayout
from ansor.program.program import Program
from ansor.program.steps import ScheduleByHand

NO_CHANGE = "ansor.final"  # annotation that no pass reads
PREPACKED = "meta_schedule.layout_rewrite_preproc"  # `SplitLayoutRewritePreproc` looks for it


class TracedReplay(Replay):
    """A replay whose schedule keeps the parameters of the function.

    The copy that packs a constant is a separate block. TVM's pass `SplitLayoutRewritePreproc` makes
    it a separate function, and `FoldConstant` computes it once.
    """

    def __init__(self, func: tirx.PrimFunc, program: Program) -> None:
        if any(isinstance(step, ScheduleByHand) for step in program.steps):
            raise UnsupportedError(
                "a trace cannot carry a schedule that a user wrote", "export the final functions"
            )
        super().__init__(func, program)
        self.unpacked: list[str] = []  # constants whose layout has places that repeat columns

    def pack(self, stage: str, buffer: str, layout: PackedLayout) -> None:
        """See `Replay`."""
        columns = int(self.buffers[buffer].shape[-1])
        if layout.places(columns) > columns:
            self.unpacked.append(buffer)
            return
        read = self.read_number(stage, buffer)
        copy = self.sch.cache_read(self.blocks[stage], read, "global")
        self.sch.annotate(copy, PREPACKED, 1)
        self.buffers[buffer] = self.sch.get(copy).writes[0].source
        super().pack(stage, buffer, layout)

    def restart(self, func: tirx.PrimFunc) -> None:
        """Raises an error, because the trace would begin anew with another function.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "a trace cannot carry instructions that add up groups of products",
            "export the final functions",
        )


def traced(
    func: tirx.PrimFunc, program: Program, by_hand: HandSchedule | None = None
) -> s_tir.Trace:
    """The trace of a program.

    Args:
        func: the definition; the trace applies to a module with it as "main".
        program: of the definition.
        by_hand: the schedule that the program names, where a user wrote it.

    Raises:
        LoweringError: a step does not apply (the message names it).
        UnsupportedError: plain TVM could not replay the trace.
    """
    if by_hand is not None:
        trace: s_tir.Trace = by_hand.trace(func, program.values)
        return trace
    replay = replayed(TracedReplay(func, program))
    if replay.dealt or replay.instructions:
        raise UnsupportedError(
            "a trace cannot carry threads that are dealt out or instructions of tensor cores",
            "export the final functions",
        )
    return replay.sch.trace


def left_out(func: tirx.PrimFunc, program: Program) -> tuple[str, ...]:
    """Descriptions of the parts of a program that its trace does not have."""
    replay = replayed(TracedReplay(func, program))
    parts = {
        "shifted tails": replay.tails,
        "packed panels": replay.unpacked,
        "prefetches": replay.prefetched or replay.prefetches,
        "skipped padding": replay.guards,
        "transposition in registers": replay.squares,
        "interleaved rows": replay.interleaved,
    }
    return tuple(name for name, concerned in parts.items() if concerned)


def no_change(mod: tvm.IRModule) -> s_tir.Trace:
    """A trace that leaves a function "main" as it is: TVM applies no trace without instructions."""
    sch = s_tir.Schedule(mod)
    sch.annotate(sch.get_sblock("root"), NO_CHANGE, 1)
    return sch.trace
