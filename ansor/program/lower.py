"""Replays the steps of one program on a TensorIR schedule.

The first interpreter of the steps (the second is `nest`); the only module that touches TVM's
schedule API.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, singledispatchmethod
from typing import Any, TypeVar

import tvm
from tvm import tirx

from ansor.dag.from_tir import block_names, buffer_names, read_dag
from ansor.dag.graph import ComputeDAG
from ansor.errors import LoweringError
from ansor.program.fetch import with_fetching
from ansor.program.loops import (
    Loop,
    lane_table,
    largest_divisor,
    num_leading,
    own_loops,
)
from ansor.program.lower_gpu import replay_for_gpu
from ansor.program.lower_graph import Restructuring, restructure
from ansor.program.prefetch import PrefetchedOperand, insert_prefetches
from ansor.program.prefetch_ahead import prefetch_ahead
from ansor.program.prefetch_rows import prefetch_rows
from ansor.program.prefetch_tiles import TileConsumer, prefetch_tiles
from ansor.program.program import Program
from ansor.program.roles import Roles
from ansor.program.skip import Guard, skip_padding
from ansor.program.slab import is_far
from ansor.program.steps import (
    Bind,
    CacheRead,
    ComputeAt,
    CooperativeStore,
    FuseConsumer,
    Initialise,
    MultiLevelTile,
    Parallel,
    Prefetch,
    RegisterTile,
    SkipPadding,
    Step,
    StoreFragment,
    StripMine,
    TensorTile,
    Transpose,
    Unroll,
    Vectorize,
)
from ansor.program.tail import Tail, shift_tails
from ansor.program.threads import deal_out
from ansor.program.transpose import transpose_tiles
from ansor.program.unchecked import UncheckedSchedule

T = TypeVar("T")

TENSOR_CORES = "ansor.tensor_cores"  # attribute of a function that uses them
ASYNC_COPIES = "ansor.async_copies"  # the same, to shared memory


def lower(func: tirx.PrimFunc, program: Program) -> tirx.PrimFunc:
    """Returns `func` scheduled as `program` says; without steps, `func` itself.

    Raises:
        LoweringError: a step does not apply (the message names it).
    """
    if not program.steps:
        return func
    return schedule(func, program).result()


def schedule(func: tirx.PrimFunc, program: Program) -> Replay:
    """Like `lower`, but returns the schedule with its blocks, for inspection."""
    replay = Replay(func, program)
    for step in program.steps:
        try:
            replay.apply(step)
        except (RuntimeError, ValueError, LookupError, TypeError) as error:  # TVM's are the first
            reason = str(error).strip().splitlines()[-1:]
            raise LoweringError(f"{step}: {' '.join(reason)}") from error
    return replay


@lru_cache(maxsize=64)
def _dag_of(func: tirx.PrimFunc) -> ComputeDAG:
    """The graph of a function, told by its identity: a task's programs are all of one."""
    return read_dag(func)


class Replay:
    """The state of a replay: the schedule, and each stage's block and loops.

    `loops[stage]` lists a stage's own loop handles as `own_loops` orders them; fused loops share
    one handle, so attaching below any of them means below the fused loop. `variables[stage]` lists
    the axes of a block's variables where the block has another order than the stage. `initial` are
    the blocks that initialise reductions; `tails[stage, axis]` is a split that does not divide;
    `dealt[stage]` is the loop that is dealt out to threads of a GPU, and how many a block has;
    `guards[stage]` say which of its steps are left out; `prefetched[stage]` its prefetched operand;
    `squares[stage]` is the outer loop of tiles that are transposed in registers, and its extent;
    `instructions[stage]` is the block inside a stage's own that a tensor unit computes;
    `asynchronous` says whether something is copied while threads go on.
    """

    def __init__(self, func: tirx.PrimFunc, program: Program) -> None:
        # Kept alive on purpose: a module that only the schedule holds is mutated in place, and
        # `func`, whose body it shares, with it.
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
        self.dealt: dict[str, tuple[Any, int]] = {}
        self.guards: dict[str, list[Guard]] = {}
        self.prefetched: dict[str, PrefetchedOperand] = {}
        self.squares: dict[str, tuple[Any, int]] = {}
        self.instructions: dict[str, Any] = {}
        self.asynchronous = False
        self.dag = _dag_of(func)
        self.steps = program.steps

    @property
    def roles(self) -> Roles:
        """What the steps make of each stage; to be asked after the structural steps."""
        return Roles(self.dag, self.steps)

    def result(self) -> tirx.PrimFunc:
        """The scheduled function, its last tiles moved where splits do not divide."""
        tails: dict[str, dict[int, Tail]] = {}
        for (name, axis), tail in self.tails.items():
            for block in (self.blocks[name], self.initial.get(name)):
                if block is not None:
                    found = tails.setdefault(str(self.sch.get(block).name_hint), {})
                    found[self._spatial_number(name, axis)] = tail
        func = shift_tails(self.sch.mod["main"], tails)
        func = self._with_prefetches(func)
        func = skip_padding(func, self._by_hint(self.guards))
        func = transpose_tiles(func, self._variables(self.squares))
        func = deal_out(func, self._variables(self.dealt))
        func = func.with_attr(TENSOR_CORES, True) if self.instructions else func
        return func.with_attr(ASYNC_COPIES, True) if self.asynchronous else func

    def _with_prefetches(self, func: tirx.PrimFunc) -> tirx.PrimFunc:
        """On CPUs: of constants, of what is packed, and of what consumers of tiles touch."""
        if any(isinstance(step, Bind) for step in self.steps):
            return func
        packs = [step.copy for step in self.steps if isinstance(step, CacheRead)]
        far = self._by_hint(self._far_operands(func))
        fused = [step for step in self.steps if isinstance(step, FuseConsumer)]
        consumers = {step.consumer: self._consumer(step) for step in fused}
        body = insert_prefetches(func.body, self._by_hint(self.prefetched), func.params)
        body = prefetch_rows(body, list(self._by_hint(dict.fromkeys(packs))), far)
        body = prefetch_ahead(body, far)
        body = prefetch_tiles(body, self._by_hint(consumers), func.params)
        return func if body.same_as(func.body) else func.with_body(with_fetching(body))

    def _far_operands(self, func: tirx.PrimFunc) -> dict[str, list[Any]]:
        """For stages in tiles: large parameters, unless prefetching them is a decision."""
        decided = {(s.stage, s.buffer) for s in self.steps if isinstance(s, Prefetch)}
        large = [x for x in zip(self.parameters, func.params, strict=True) if is_far(x[1])]
        tiled = (step.stage for step in self.steps if isinstance(step, MultiLevelTile))
        found = {
            stage: [param for name, param in large if (stage, name) not in decided]
            for stage in tiled
        }
        return {stage: params for stage, params in found.items() if params}

    def _consumer(self, step: FuseConsumer) -> TileConsumer:
        variables = [self.sch.get(loop).loop_var for loop in self.loops[step.consumer]]
        return TileConsumer(self._hint(step.stage), variables)

    def _by_hint(self, found: Mapping[str, T]) -> dict[str, T]:
        """By the name of a stage's block."""
        return {self._hint(name): x for name, x in found.items()}

    def _hint(self, name: str) -> str:
        """Name of a stage's block, which TVM chooses."""
        return str(self.sch.get(self.blocks[name]).name_hint)

    def _variables(self, loops: dict[str, tuple[Any, int]]) -> dict[Any, int]:
        return {self.sch.get(loop).loop_var: size for loop, size in loops.values()}

    def _spatial_number(self, name: str, axis: int) -> int:
        """Number of an axis among the spatial variables of its block."""
        axes = self.dag.stages[name].axes
        order = self.variables.get(name, list(range(len(axes))))
        return [a for a in order if not axes[a].reduce].index(axis)

    @singledispatchmethod
    def apply(self, step: Step) -> None:
        """Replays one step: here those of CPUs, and those that GPUs share with them."""
        if isinstance(step, Restructuring):
            restructure(step, self)
        else:
            replay_for_gpu(step, self)

    @apply.register
    def _(self, step: MultiLevelTile) -> None:
        self.split_root(step.stage, step)

    @apply.register
    def _(self, step: RegisterTile) -> None:
        pass  # the loops are split when the stage is attached

    @apply.register
    def _(self, step: StripMine) -> None:
        self.split_root(step.stage, step)

    def split_root(self, name: str, shape: MultiLevelTile | StripMine) -> None:
        """Splits the loops of a root stage as its holes say and puts the parts in order."""
        loops = self.sch.get_loops(self.blocks[name])
        if isinstance(shape, StripMine) and shape.hole is None:
            self._split_for_vectors(name, loops)
            return
        roles = self.roles
        parts: dict[tuple[int, int], Any] = {}
        for axis, loop in enumerate(loops):
            hole = roles.hole_of(name, axis)
            split = [loop] if hole is None else self._tiled(name, axis, loop, self.values[hole])
            parts |= {(axis, part): handle for part, handle in enumerate(split)}
        self._reorder(name, own_loops(self.dag.stages[name], shape), parts)

    def _tiled(self, name: str, axis: int, loop: Any, factors: tuple[int, ...]) -> list[Any]:
        """Splits a loop; notes the tile where the factors do not divide it."""
        extent = int(self.sch.get(loop).extent)
        if math.prod(factors) > extent:
            self.tails[name, axis] = Tail(extent, factors[-1])
        return self._parts(loop, factors)

    def _parts(self, loop: Any, factors: tuple[int, ...]) -> list[Any]:
        return list(self.sch.split(loop, list(factors), preserve_unit_iters=True))

    def _reorder(
        self, name: str, order: tuple[Loop, ...], parts: dict[tuple[int, int], Any]
    ) -> None:
        self.loops[name] = [parts[loop.axis, loop.part] for loop in order]
        if len(order) > 1:
            self.sch.reorder(*self.loops[name])

    @apply.register
    def _(self, step: Parallel) -> None:
        (count,) = self.values[step.hole]
        if count == 0:
            return
        loops = self.loops[step.stage]
        fused = self.sch.fuse(*loops[:count], preserve_unit_iters=True)
        self.sch.parallel(fused)
        self.loops[step.stage] = [fused] * count + loops[count:]

    @apply.register
    def _(self, step: FuseConsumer) -> None:
        position = self.roles.position_of(self.values, step.consumer)
        loop = self.loops[step.stage][position - 1]
        block = self.blocks[step.consumer]
        self.sch.reverse_compute_at(block, loop, preserve_unit_loops=True)
        tails = {axis: tail for (name, axis), tail in self.tails.items() if name == step.stage}
        self.tails |= {(step.consumer, axis): tail for axis, tail in tails.items()}
        self._adopt(step.consumer)

    @apply.register
    def _(self, step: ComputeAt) -> None:
        roles = self.roles
        position = roles.position_of(self.values, step.stage)
        if position > 0:
            loop = self.loops[step.host][position - 1]
            for name in (*roles.fused_into(step.stage), step.stage):
                self.sch.compute_at(self.blocks[name], loop, preserve_unit_loops=True)
            self._adopt(step.stage)
            return
        self.split_attached(step.stage, self.sch.get_loops(self.blocks[step.stage]))
        self._parallel_root(step.stage)

    def _adopt(self, name: str) -> None:
        """Takes over the loops that attaching has made, in the order of the block's variables."""
        axes = range(len(self.dag.stages[name].axes))
        loops = self.sch.get_loops(self.blocks[name])[-len(axes) :]
        order = self.variables.get(name, list(axes))
        self.split_attached(name, [loops[order.index(axis)] for axis in axes])

    def split_attached(self, name: str, own: list[Any]) -> None:
        """Splits the loops of an attached stage, for registers or just for vectors."""
        shape = self.roles.shape.get(name)
        if not isinstance(shape, RegisterTile):
            self._split_for_vectors(name, own)
            return
        parts: dict[tuple[int, int], Any] = {}
        for axis, (loop, hole) in enumerate(zip(own, shape.holes, strict=True)):
            most = self.values[hole][0] if hole else 1
            reduce = self.dag.stages[name].axes[axis].reduce
            split = [loop] if reduce else self._divide(loop, most)
            parts |= {(axis, part): handle for part, handle in enumerate(split)}
        self._reorder(name, own_loops(self.dag.stages[name], shape), parts)

    def _divide(self, loop: Any, most: int) -> list[Any]:
        """Splits off the largest divisor of a loop's extent that is at most `most`."""
        extent = int(self.sch.get(loop).extent)
        inner = largest_divisor(extent, most)
        return self._parts(loop, (extent // inner, inner))

    def _split_for_vectors(self, name: str, own: list[Any]) -> None:
        """Orders a stage's own loops: spatial ones, reductions, the vector part last."""
        order = own_loops(self.dag.stages[name], None)
        parts: dict[tuple[int, int], Any] = {(axis, 0): loop for axis, loop in enumerate(own)}
        if order[-1].part == 1:
            axis = order[-1].axis
            step, extent = self.roles.vector.get(name), int(self.sch.get(own[axis]).extent)
            most, register = (step.lanes, step.register) if step is not None else (1, 0)
            width = int(lane_table(most, register, extent)[extent])
            outer, inner = self._tiled(name, axis, own[axis], (-(-extent // width), width))
            parts |= {(axis, 0): outer, (axis, 1): inner}
        self._reorder(name, order, parts)

    def _parallel_root(self, name: str) -> None:
        """Runs a located stage that ended up at the root on all cores."""
        count = num_leading(self.dag.stages[name])
        if count:
            fused = self.sch.fuse(*self.loops[name][:count], preserve_unit_iters=True)
            self.sch.parallel(fused)
            self.loops[name][:count] = [fused] * count

    @apply.register
    def _(self, step: Vectorize) -> None:
        self._vectorize(self.loops[step.stage][-1])

    @apply.register
    def _(self, step: Transpose) -> None:
        outer, inner = self.loops[step.stage][-2:]
        if all(int(self.sch.get(loop).extent) == step.lanes for loop in (outer, inner)):
            self.squares[step.stage] = outer, step.lanes
        self._vectorize(inner)

    def _vectorize(self, loop: Any) -> None:
        if int(self.sch.get(loop).extent) > 1:
            self.sch.vectorize(loop)

    @apply.register
    def _(self, step: Unroll) -> None:
        for number in self.roles.unrolled(step.stage):
            loop = self.loops_of(step.stage)[number]
            if int(self.sch.get(loop).extent) > 1:
                self.sch.unroll(loop)
        most = self.values[step.hole][0] if step.hole is not None else 0
        if most > 0:
            outer = self.loops_of(step.stage)[0]
            self.sch.annotate(outer, "pragma_auto_unroll_max_step", most)
            self.sch.annotate(outer, "pragma_unroll_explicit", 1)

    @apply.register
    def _(self, step: Initialise) -> None:
        stage = self.dag.stages[step.stage]
        order = own_loops(stage, self.roles.shape.get(step.stage))
        first = next(i for i, loop in enumerate(order) if loop.reduce)
        self.blocks[step.stage] = self._update_of(step.stage, self.loops_of(step.stage)[first])

    @apply.register
    def _(self, step: SkipPadding) -> None:
        if self.values[step.hole][0]:
            self.guards[step.stage] = [
                Guard(self.buffers[p.buffer], p.dim, p.first, p.end) for p in step.padded
            ]

    @apply.register
    def _(self, step: Prefetch) -> None:
        if self.values[step.hole][0]:
            parameter = self.parameters.index(step.buffer)  # a change of layout makes a new buffer
            self.prefetched[step.stage] = PrefetchedOperand(
                parameter, step.elements, step.run, step.distance
            )

    @apply.register(TensorTile)  # kinds of steps that have an interpretation above
    @apply.register(CooperativeStore)
    @apply.register(StoreFragment)
    def _(self, step: Step) -> None:
        replay_for_gpu(step, self)

    def loops_of(self, name: str) -> list[Any]:
        """Loops of a stage; one without spatial axes was never split."""
        return self.loops.setdefault(name, list(self.sch.get_loops(self.blocks[name])))

    def _update_of(self, name: str, loop: Any) -> Any:
        """Splits off the initialisation; the update keeps the block's handle."""
        self.initial[name] = self.sch.decompose_reduction(self.blocks[name], loop)
        return self.blocks[name]
