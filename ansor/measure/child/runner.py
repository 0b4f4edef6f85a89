"""Answers requests to build, time and check programs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tvm import tirx

from ansor.config import MeasureConfig
from ansor.measure.child.cold_weights import ColdMemory
from ansor.measure.child.neighbours import Neighbours
from ansor.measure.child.rehearsal import CompiledKernel, rehearse
from ansor.measure.child.remote.runner import RemoteRunner
from ansor.measure.child.stage import stage
from ansor.measure.child.task_table import TaskTable
from ansor.measure.child.timing import Timed, time_program, time_round
from ansor.measure.child.timing_conditions import Watch, watch_over
from ansor.measure.child.worker_task import WorkerTask
from ansor.measure.protocol import Define, Rehearse
from ansor.measure.result import ErrorKind, Timing
from ansor.program.program import Program
from ansor.targets.build import compile_function
from ansor.targets.host.threads import free_cores, on_cores


@dataclass(frozen=True, eq=False)
class BuiltProgram:
    """A built program: its machine code, and its scheduled function."""

    task: WorkerTask
    func: tirx.PrimFunc
    module: Any


@dataclass
class Runner:
    """Answers the requests of `ansor.measure.protocol`, one method each.

    Attributes:
        table: of the tasks.
        slots: the programs that are kept.
        watches: by the text of a target.
        neighbours: by the text of a target.
        rounds: number of comparisons so far.
        here: whether programs are timed in this process.
    """

    table: TaskTable
    slots: dict[int, BuiltProgram] = field(default_factory=dict)
    watches: dict[str, Watch | None] = field(default_factory=dict)
    neighbours: dict[str, Neighbours] = field(default_factory=dict)
    rounds: int = 0
    here: bool = True

    @property
    def config(self) -> MeasureConfig:
        """How programs are measured."""
        return self.table.config

    @cached_property
    def cold(self) -> ColdMemory:
        """Memory through which the places of weights rotate."""
        return ColdMemory(self.config.cold_pool_bytes, self.config.max_copies)

    @cached_property
    def remote(self) -> RemoteRunner:
        """Answers the requests of a device behind TVM's RPC."""
        return RemoteRunner(self.table)

    def define(self, task: Define) -> None:
        """Keeps a task. The first task of a target also creates the watch for disturbances."""
        if self.here and task.target not in self.watches:
            self.watches[task.target] = watch_over(task.target, self.config)
        self.table.add(task)

    def build(self, key: str, slot: int, program: Program) -> None:
        """Lowers and compiles a program and keeps it."""
        self.slots[slot] = self._compiled(self.table.tasks[key], program)

    def time(self, slot: int, best_s: float) -> Timing:
        """Times a kept program and drops it."""
        built = self.slots.pop(slot)
        self.table.make_room(built.task)
        with stage(ErrorKind.RUN):
            return time_program(self._timed(built), best_s, self.config)

    def compare(self, slots: tuple[int, ...], keep: bool) -> tuple[Timing, ...]:
        """Times kept programs one after the other; if one fails, all are dropped."""
        kept = [self.slots.pop(slot) for slot in slots]
        self.rounds += 1
        for built in kept:
            self.table.make_room(built.task)
        with stage(ErrorKind.RUN):
            times = tuple(self._time_round(built) for built in kept)
        if keep:
            self.slots |= dict(zip(slots, kept, strict=True))
        return times

    def rehearse(self, request: Rehearse) -> dict[int, float]:
        """Times kept programs in the run of a network and drops them."""
        kept = {
            name: [self.slots.pop(slot) for slot in slots]
            for name, slots in request.candidates.items()
        }
        candidates = {
            name: [CompiledKernel(b.module, b.func.params) for b in programs]
            for name, programs in kept.items()
        }
        with stage(ErrorKind.RUN), on_cores(free_cores()):
            found = rehearse(
                request.plan,
                candidates,
                request.seconds,
                self.config,
            )
        return {
            slot: seconds
            for name, slots in request.candidates.items()
            for slot, seconds in zip(slots, found[name], strict=False)
        }

    def verify(self, key: str, program: Program) -> float:
        """Difference between the program and the reference, relative to the largest value."""
        task = self.table.tasks[key]
        self.table.make_room(task)
        built = self._compiled(task, program)
        with stage(ErrorKind.RUN):
            return self.table.difference(task, program, built.module, task.device)

    def _time_round(self, built: BuiltProgram) -> Timing:
        """Times a program at the addresses of this round; each round has other addresses."""
        timed, layouts = self._timed(built), built.task.layouts
        if timed.layouts:
            one = layouts[self.rounds % len(layouts)]
            timed = replace(timed, sets=[one], layouts=())
        return time_round(timed, self.config)

    def _timed(self, built: BuiltProgram) -> Timed:
        task = built.task
        if not self.table.backend.execution.on_host:
            flush = self.config.gpu_flush_bytes if task.in_network else 0
            return Timed(built.module, task.device, [task.arguments], flush_bytes=flush)
        others, arguments = None, None
        if task.in_network:
            arguments, others = task.among(self._neighbours(task.target))
        sets = self._argument_sets(built, arguments or task.arguments)
        elsewhere = task.layouts[1:] if arguments is None else []
        return Timed(
            built.module,
            task.device,
            sets,
            others,
            self.watches.get(task.target),
            layouts=elsewhere,
            other_runs=self.config.other_runs,
        )

    def _neighbours(self, target: str) -> Neighbours:
        if target not in self.neighbours:
            self.neighbours[target] = Neighbours(target)
        return self.neighbours[target]

    def _argument_sets(self, built: BuiltProgram, arguments: list[Any]) -> list[list[Any]]:
        """The arguments, or in a network several sets that differ in their weights."""
        task = built.task
        if not task.constants or not task.in_network:
            return [arguments]
        sets = []
        for copies in self.cold.sets([built.func.params[i] for i in task.constants]):
            changed = list(arguments)
            for position, copy in zip(task.constants, copies, strict=True):
                changed[position] = copy
            sets.append(changed)
        return sets

    def _compiled(self, task: WorkerTask, program: Program) -> BuiltProgram:
        with stage(ErrorKind.LOWER):
            func = self.table.lowered(task, program)
        with stage(ErrorKind.BUILD):
            return BuiltProgram(task, func, compile_function(func, task.target))
