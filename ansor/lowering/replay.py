"""The state of a replay: a TensorIR schedule, and the blocks and loops of each stage."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import tvm
from tvm import tirx

from ansor.dag.from_tir.read import block_names, buffer_names, read_dag
from ansor.dag.graph import ComputeDAG
from ansor.lowering.passes.packed_columns import with_parameter
from ansor.lowering.passes.shifted_tails import Tail
from ansor.lowering.passes.skip_padding import Guard
from ansor.lowering.prefetch.constant_operands import PrefetchedOperand
from ansor.lowering.unchecked import UncheckedSchedule
from ansor.program.hand_schedule import HandSchedule
from ansor.program.layout import PackedLayout
from ansor.program.program import Program
from ansor.program.roles import Roles
from ansor.program.steps import Step


@lru_cache(maxsize=64)
def _dag_of(func: tirx.PrimFunc) -> ComputeDAG:
    """The graph of a function. The cache's key is the identity of the function."""
    return read_dag(func)


class Replay:
    """The state of a replay: the schedule, and each stage's block and loops.

    Attributes:
        loops: of each stage, its own loop handles in the order of `own_loops`. Fused loops share
            one handle, so attaching below any of them means below the fused loop.
        variables: the axes of a block's variables, if the block has another order than the stage.
        initial: the blocks that initialise reductions.
        tails: for a stage and an axis, a split that does not divide.
        in_tile_order: of a packed constant, the stage whose tiles order its columns.
        dealt: of a stage, the loop that is distributed over threads of a GPU, and the number of
            threads of a block.
        guards: of a stage, the conditions that leave steps out.
        prefetched: of a stage, its prefetched constant.
        prefetches: the steps that always prefetch.
        squares: of a stage, the outer loop of tiles that are transposed in registers, and its
            extent.
        interleaved: of a stage, the outer loop of tiles whose rows are interleaved, and the number
            of lanes.
        instructions: of a stage, the block inside its own block that a tensor unit computes.
        has_dot_products: whether an instruction adds up groups of products.
        asynchronous: whether copies run while threads go on.
        by_hand: the schedule that a user wrote for the definition `func`, None for none.
    """

    def __init__(
        self, func: tirx.PrimFunc, program: Program, by_hand: HandSchedule | None = None
    ) -> None:
        # This reference is necessary. TVM mutates a module in place if only the schedule refers to
        # it. This would change `func`, too, which shares its body.
        self.module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        self.sch = UncheckedSchedule(self.module, error_render_level="none")
        self.values = program.values
        self.blocks: dict[str, Any] = {n: self.sch.get_sblock(n) for n in block_names(func)}
        names = buffer_names(func)
        self.buffers = {name: buffer for buffer, name in names.items()}
        self.parameters = [names[buffer] for buffer in func.params]
        self.loops: dict[str, list[Any]] = {}
        self.variables: dict[str, list[int]] = {}
        self.initial: dict[str, Any] = {}
        self.tails: dict[tuple[str, int], Tail] = {}
        self.in_tile_order: dict[str, str] = {}
        self.dealt: dict[str, tuple[Any, int]] = {}
        self.guards: dict[str, list[Guard]] = {}
        self.prefetched: dict[str, PrefetchedOperand] = {}
        self.prefetches: list[Step] = []
        self.squares: dict[str, tuple[Any, int]] = {}
        self.interleaved: dict[str, tuple[Any, int]] = {}
        self.instructions: dict[str, Any] = {}
        self.has_dot_products = False
        self.asynchronous = False
        self.dag = _dag_of(func)
        self.steps = program.steps
        self.func, self.by_hand = func, by_hand

    def restart(self, func: tirx.PrimFunc) -> None:
        """Continues with another function that has the same blocks, before any loop is split."""
        hints = {name: self.hint(name) for name in self.blocks}
        self.start_from(func)
        self.blocks = {name: self.sch.get_sblock(hint) for name, hint in hints.items()}

    def start_from(self, func: tirx.PrimFunc) -> None:
        """Continues with another function, whose blocks are not known."""
        self.module = tvm.IRModule({"main": func})
        self.sch = UncheckedSchedule(self.module, error_render_level="none")
        self.blocks = {}

    def pack(self, stage: str, buffer: str, layout: PackedLayout) -> None:
        """Lets a stage read a constant in a packed layout."""
        self._make_room(stage, buffer, layout)
        read = self.read_number(stage, buffer)
        self.sch.transform_layout(
            self.blocks[stage], ("read", read), lambda *index: layout.index(index)
        )

    def read_number(self, stage: str, buffer: str) -> int:
        """Number of a buffer among the reads of a stage's block."""
        source, reads = self.buffers[buffer], self.sch.get(self.blocks[stage]).reads
        return [region.source.same_as(source) for region in reads].index(True)

    def _make_room(self, stage: str, buffer: str, layout: PackedLayout) -> None:
        """Enlarges a constant to the places of its layout, which may exceed its columns."""
        old = self.buffers[buffer]
        columns = int(old.shape[-1])
        if layout.has_tiles(columns):
            self.in_tile_order[buffer] = stage
        places = layout.places(columns)
        if places > columns:
            shape = (*old.shape[:-1], tirx.const(places, str(old.shape[-1].ty.dtype)))
            longer = tirx.decl_buffer(shape, str(old.dtype), str(old.name), layout=None)
            self.buffers[buffer] = longer
            self.restart(with_parameter(self.sch.mod["main"], old, longer))

    @property
    def roles(self) -> Roles:
        """The roles of stages; valid after the structural steps."""
        return Roles(self.dag, self.steps)

    def loops_of(self, name: str) -> list[Any]:
        """Loops of a stage; a stage without spatial axes was never split."""
        return self.loops.setdefault(name, list(self.sch.get_loops(self.blocks[name])))

    def hint(self, name: str) -> str:
        """Name of a stage's block, which TVM chooses."""
        return str(self.sch.get(self.blocks[name]).name_hint)
