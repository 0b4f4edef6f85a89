"""Explains the winner of a task: its bound, registers, traffic, rival and search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansor.config import EXPLAIN
from ansor.dag.graph import ComputeDAG
from ansor.explain.explanation import Explanation
from ansor.explain.figures import (
    Difference,
    LevelTraffic,
    Limits,
    RunnerUp,
    SearchSummary,
    SketchTrials,
    VariantTrials,
)
from ansor.explain.program_model import ProgramModel, main_stage, model_of
from ansor.explain.structure import structure_text
from ansor.explain.trials import TimedProgram, Trials
from ansor.program.program import Program
from ansor.program.pseudo_code import show_program
from ansor.program.sketch import Sketch
from ansor.targets.machine import M
from ansor.targets.search import TargetSearch
from ansor.targets.stage_details import Transfer
from ansor.task import Task

_FLOAT32_BYTES = 4


@dataclass(frozen=True, eq=False)
class Subject:
    """The subject of an explanation.

    Attributes:
        task: of the winner.
        winner: its program.
        latency_s: seconds of one run; None if it was not measured.
        sketches: the space of the task.
        trials: all measurements, by the variant of the function; those of the task are among them.
    """

    task: Task
    winner: Program
    latency_s: float | None
    sketches: Sequence[Sketch]
    trials: Mapping[str, Trials]

    @property
    def own(self) -> Trials:
        """Measurements of the task."""
        return self.trials[self.task.kind]


def explain(subject: Subject, machine: M, search: TargetSearch[M]) -> Explanation:
    """Explains a winner.

    Args:
        subject: the winner and its task.
        machine: parameters of the machine that ran the programs.
        search: draft and details of its kind of target.
    """
    task, winner = subject.task, subject.winner
    model, note = _modelled(winner, subject.sketches, machine, search)
    limits = _limits(subject, machine)
    details = None if model is None else model.details.get(model.main_stage)
    return Explanation(
        task=task.group,
        key=task.key,
        variant=task.kind,
        target=task.target,
        machine=machine.name,
        sketch=winner.sketch,
        decisions=dict(winner.values),
        limits=limits,
        drafted=None if model is None else model.drafted,
        main_stage="" if model is None else model.main_stage,
        tile=None if details is None else details.tile,
        occupancy={} if details is None else dict(details.occupancy),
        traffic=() if model is None else _traffic(model.transfers, limits),
        loops="" if model is None else show_program(model.population),
        runner_up=_runner_up(subject, machine, search),
        search=_summary(subject),
        note=note,
    )


def _modelled(
    program: Program, sketches: Sequence[Sketch], machine: M, search: TargetSearch[M]
) -> tuple[ProgramModel | None, str]:
    """The model of a program, or why there is none."""
    if not program.steps:
        return None, "the winner is the definition as it was written; the draft has no loops of it"
    for sketch in sketches:
        if sketch.row_of(program) is not None:
            if sketch.by_hand:
                return None, "the schedule is written by hand; its loops are known to TVM alone"
            return model_of(program, sketch, machine, search), ""
    reason = "is not in the space of this version, of this machine and without user's rules"
    return None, f"sketch {program.sketch} {reason}; the draft has no loops of it"


def _limits(subject: Subject, machine: M) -> Limits:
    """The peaks of the machine for the task."""
    dag = subject.task.dag
    dtype, item_bytes = _operands(dag)
    short = item_bytes < _FLOAT32_BYTES
    peak = machine.product_flops(item_bytes) if short else machine.peak_flops
    memory = machine.memory_bandwidth
    return Limits(
        latency_s=subject.latency_s,
        flops=dag.flops,
        peak_flops=peak if math.isfinite(peak) else None,
        peak_name=dtype if short else "float32",
        compulsory_bytes=compulsory_bytes(dag),
        memory_bytes_per_s=memory if math.isfinite(memory) else None,
    )


def compulsory_bytes(dag: ComputeDAG) -> int:
    """Bytes of all inputs and outputs of a definition."""
    return sum(each.num_bytes for each in dag.buffers.values() if each.kind != "intermediate")


def _operands(dag: ComputeDAG) -> tuple[str, int]:
    """Dtype and bytes of the widest operand of the main stage."""
    reads = dag.stages[main_stage(dag)].reads
    buffers = [dag.buffers[read.buffer] for read in reads]
    widest = max(buffers, key=lambda buffer: buffer.item_bytes, default=None)
    return ("float32", _FLOAT32_BYTES) if widest is None else (widest.dtype, widest.item_bytes)


def _traffic(transfers: Sequence[Transfer], limits: Limits) -> tuple[LevelTraffic, ...]:
    """Transfers beside the compulsory bytes and the bandwidths."""
    least, seconds = max(limits.compulsory_bytes, 1), limits.latency_s
    return tuple(
        LevelTraffic(
            each.path,
            each.bytes,
            each.bytes / least,
            each.bytes / seconds / each.bytes_per_s if seconds else None,
        )
        for each in transfers
    )


def _runner_up(subject: Subject, machine: M, search: TargetSearch[M]) -> RunnerUp | None:
    """The fastest program beside the winner."""
    others = (one for one in subject.own.fastest if one.program != subject.winner)
    other: TimedProgram | None = next(others, None)
    if other is None:
        return None
    model, _ = _modelled(other.program, subject.sketches, machine, search)
    return RunnerUp(
        other.program.sketch,
        other.latency_s,
        None if model is None else model.drafted.seconds,
        differences(subject.winner.values, other.program.values),
    )


def differences(
    winner: Mapping[str, tuple[int, ...]], runner_up: Mapping[str, tuple[int, ...]]
) -> tuple[Difference, ...]:
    """The decisions of two programs with different values, in the order of the winner's."""
    pairs = {
        name: (winner.get(name, ()), runner_up.get(name, ())) for name in (*winner, *runner_up)
    }
    return tuple(Difference(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1])


def _summary(subject: Subject) -> SearchSummary:
    """The trials of the search."""
    trials, sketches = subject.own, subject.sketches
    last = min(EXPLAIN.last_trials, len(trials.each) // 2)
    structures = {sketch.name: structure_text(sketch) for sketch in sketches}
    names = dict.fromkeys([*structures, *(each.sketch for each in trials.each)])
    rows = [_of_sketch(name, structures.get(name, ""), trials) for name in names]
    return SearchSummary(
        sketches=tuple(sorted(rows, key=lambda row: (row.best_s is None, row.best_s or 0.0))),
        trials=len(trials.each),
        failures=trials.failures,
        best_trial=None if trials.best is None else trials.best[0],
        last_trials=last,
        last_gain=trials.gain_of_last(last),
        hosts=trials.hosts,
        variants=tuple(
            VariantTrials(kind, len(each.each), None if each.best is None else each.best[1])
            for kind, each in subject.trials.items()
        ),
    )


def _of_sketch(name: str, structure: str, trials: Trials) -> SketchTrials:
    tried = [each for each in trials.each if each.sketch == name]
    times = [each.latency_s for each in tried if each.latency_s is not None]
    failed = sum(each.error is not None for each in tried)
    return SketchTrials(name, structure, len(tried), failed, min(times, default=None))
