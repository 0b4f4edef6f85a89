"""Schedules written by hand against derived sketches and MetaSchedule, at equal numbers of trials.

``python -m benchmarks.templates --ops C2D.2,GMM.2 --policies evolutionary,ga,opevo,xgb-sa --trials
200 --json FILE`` tunes the template of each operator by each policy. With ``--policies ""`` and
``--metaschedule`` it compares the schedule functions with MetaSchedule, on C2D, GMM and SFM. All
winners are timed again at the end, in turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import click
import numpy as np

import ansor
from ansor.errors import ArgumentError
from ansor.frontend.variants import KINDS
from ansor.policy.registry import DEFAULT
from ansor.report.formatting import align
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from ansor.workloads.workload import Workload
from benchmarks import hand_schedules
from benchmarks.environment import environment, write
from benchmarks.operator_case import Case, workload_of

SKETCHES, FUNCTION, METASCHEDULE = "sketches", "function", "metaschedule"
ROUNDS = 5  # turns in which the winners are timed
TURN_S = 0.2  # seconds of runs in a turn


@dataclass(frozen=True)
class ByHand:
    """The schedules of a family of operators; a template is None where there is none."""

    template: Any
    function: Callable[[Any], None]


BY_HAND: Mapping[str, ByHand] = MappingProxyType(
    {
        "GMM": ByHand(hand_schedules.panel_matmul, hand_schedules.sampled_matmul),
        "C2D": ByHand(hand_schedules.register_conv2d, hand_schedules.sampled_conv2d),
        "SFM": ByHand(None, hand_schedules.sampled_softmax),
    }
)


@dataclass(frozen=True)
class Row:
    """How one system did on an operator.

    Attributes:
        op: such as "GMM.2".
        system: "sketches", "template POLICY", "function" or "metaschedule".
        latency_us: median of all turns.
        to_sketches: its latency as a multiple of that of the sketches.
        trials: programs measured.
        max_rel_err: largest error relative to the largest value of NumPy's result.
    """

    op: str
    system: str
    latency_us: float
    to_sketches: float
    trials: int
    max_rel_err: float


@dataclass(frozen=True)
class Contender:
    """A tuned program: its output, what times a turn in seconds, and its trials."""

    output: Any
    turn_s: Callable[[], float]
    trials: int


def by_hand(op: str) -> ByHand:
    """The schedules of an operator.

    Raises:
        ArgumentError: its family has none.
    """
    family = op.partition(".")[0]
    if family not in BY_HAND:
        raise ArgumentError("ops", op, f"give some of {', '.join(BY_HAND)}")
    return BY_HAND[family]


def tuned(workload: Workload, trials: int, seed: int, **settings: Any) -> Contender:
    """The winner of a search."""
    model = ansor.auto_schedule(
        list(workload.tensors), trials=trials, seed=seed, forbid=tuple(KINDS), **settings
    )
    inputs = workload.inputs(np.random.default_rng(seed))
    spent = sum(task.trials for task in model.tasks)
    output, compiled = model(*inputs), model.compiled
    return Contender(output, lambda: compiled.latency(TURN_S, repeats=1), spent)


def metaschedule(op: str, trials: int, seed: int, folder: Path) -> Contender:
    """MetaSchedule's best program."""
    from benchmarks.peers_metaschedule import best
    from benchmarks.tvm_timing import ready_function

    threads = available_cores()
    target = target_text(resolve_target("native"), threads)
    cache = str(folder)
    case = Case(op, 1, cache, target, threads, seed, TURN_S, trials, cache)
    func, notes = best(case)
    output, turn_s = ready_function(func, case, exact=True)
    return Contender(output, turn_s, int(notes["trials"]))


def contenders(
    op: str, policies: list[str], trials: int, seed: int, with_metaschedule: bool, folder: Path
) -> dict[str, Contender]:
    """All systems on an operator, tuned."""
    workload, hand = workload_of(op), by_hand(op)
    alone: dict[str, Any] = {"sketches": False}
    found = {SKETCHES: tuned(workload, trials, seed)}
    for policy in policies if hand.template is not None else ():
        found[f"template {policy}"] = tuned(
            workload, trials, seed, templates=[hand.template], policy=policy, **alone
        )
    found[FUNCTION] = tuned(workload, trials, seed, templates=[hand.function], **alone)
    if with_metaschedule:
        found[METASCHEDULE] = metaschedule(op, trials, seed, folder)
    return found


def rows_of(op: str, found: Mapping[str, Contender], seed: int) -> list[Row]:
    """Times the winners in turns and compares their results with NumPy's."""
    workload = workload_of(op)
    expected = workload.reference(*workload.inputs(np.random.default_rng(seed)))
    times: dict[str, list[float]] = {system: [] for system in found}
    for _ in range(ROUNDS):
        for system, contender in found.items():
            times[system].append(contender.turn_s())
    medians = {system: statistics.median(seconds) for system, seconds in times.items()}
    scale = float(np.abs(expected).max())
    return [
        Row(
            op,
            system,
            medians[system] * 1e6,
            medians[system] / medians[SKETCHES],
            contender.trials,
            float(np.abs(np.asarray(contender.output) - expected).max()) / scale,
        )
        for system, contender in found.items()
    ]


@click.command()
@click.option("--ops", default="C2D.2,GMM.2", show_default=True, help="Separated by commas.")
@click.option("--policies", default=f"{DEFAULT},ga,opevo,xgb-sa", show_default=True)
@click.option("--trials", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--metaschedule", "with_metaschedule", is_flag=True, help="Tunes it, too.")
@click.option("--json", "file", type=click.Path(dir_okay=False), help="Writes the rows.")
def main(
    ops: str, policies: str, trials: int, seed: int, with_metaschedule: bool, file: str | None
) -> None:
    """Tunes schedules written by hand and compares them with derived sketches."""
    rows: list[Row] = []
    names = [name for name in policies.split(",") if name]
    for op in ops.split(","):
        with TemporaryDirectory() as folder:
            found = contenders(op, names, trials, seed, with_metaschedule, Path(folder))
            rows += rows_of(op, found, seed)
    header = ("op", "system", "µs", "to sketches", "trials")
    cells = [
        (r.op, r.system, f"{r.latency_us:.1f}", f"{r.to_sketches:.2f}", str(r.trials)) for r in rows
    ]
    click.echo(align(header, cells, (0, 1)))
    document = {"results": [asdict(row) for row in rows], "trials": trials, "seed": seed}
    write(file, {"environment": environment(), **document})


if __name__ == "__main__":
    main()
