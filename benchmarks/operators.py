"""Single operators after a small budget: against the machine's measured peak, and other systems.

``python -m benchmarks.operators --ops C2D.2,GMM.3 --dtypes float32,bfloat16,int8 --trials 64
--peers torch,metaschedule:128 --json FILE``
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import platformdirs
from tvm import tirx
from tvm.ir import save_json

from ansor.callbacks import Callback, Round
from ansor.calls import auto_schedule
from ansor.compare.turns import Outcome, ratio, take_turns
from ansor.report.progress import Progress
from ansor.targets.cpu.detect import peak_flops
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from ansor.workloads import Workload, suite
from benchmarks.environment import environment, write
from benchmarks.neighbours import neighbours_of
from benchmarks.operator_case import PEAK, Case, workload_of
from benchmarks.operator_peak import INSTRUCTION
from benchmarks.operator_peers import OURS, Peers, parse_peers, start, systems_for
from benchmarks.operator_row import Row, table
from benchmarks.operator_summary import lines, summary
from benchmarks.options import comparison_options


class _Curve(Callback):
    """Notes the best latency after every round."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.points: list[tuple[float, float | None]] = []

    def on_round(self, done: Round) -> None:
        best_s = done.task.best_s
        known = [us for _, us in self.points[-1:] if us is not None]  # of another variant, perhaps
        best_us = min([*known, *([] if best_s is None else [best_s * 1e6])], default=None)
        self.points.append((time.perf_counter() - self.began, best_us))


def measure(
    case: Case, trials: int, peers: Peers, rounds: int, before: Callable[[], None] = lambda: None
) -> Iterator[Row]:
    """Tunes one operator and times it, and what it is compared with, in turns, before each of which
    something may be done."""
    workload = case.workload
    rows = {"ansor": _tuned(case, workload, "ansor", trials)}
    for name in systems_for(case.op, peers):
        count = 0 if name == "zero" else trials
        ours = name in OURS
        rows[name] = _tuned(case, workload, name, count) if ours else _row(case, name)
    names = [name for name, row in rows.items() if not row.error]
    outcome = take_turns(lambda name: start(case, name), names, rounds, case.seconds, before=before)
    expected = workload.reference(*case.inputs(workload))
    for name, row in rows.items():
        found = replace(row, error=row.error or outcome.missing.get(name, ""))
        yield found if found.error else _judged(found, outcome, expected, case, workload.flops)


def _tuned(case: Case, workload: Workload, system: str, trials: int) -> Row:
    """Runs the search and leaves the program in the case's folder."""
    began = time.perf_counter()
    curve = _Curve(began)
    try:
        with Progress() as progress:
            tuned = auto_schedule(
                list(workload.tensors),
                trials=trials,
                seed=case.seed,
                threads=case.threads,
                callbacks=[progress, curve],
                allow=() if system == "direct" else None,
            )
        tuning_s = time.perf_counter() - began
        functions = tuned.compiled.mod.functions.values()
        (func,) = [f for f in functions if isinstance(f, tirx.PrimFunc)]
        case.program(system).write_text(save_json(func), encoding="utf-8")
    except Exception as error:  # whatever it is, the other operators are wanted
        return _row(case, system, error=_first_line(error))
    (task,), points = tuned.tasks, tuple(curve.points)
    found = {"trials": task.trials, "variant": task.variant, "best_so_far": points}
    return _row(case, system, tuning_s=tuning_s, **found)


def _row(case: Case, system: str, **found: Any) -> Row:
    return Row(case.op, system, dtype=case.dtype, **found)


def _judged(row: Row, outcome: Outcome, expected: Any, case: Case, flops: int) -> Row:
    """The row of a system that ran."""
    latencies_s = outcome.latencies_s(row.system)
    latency_s = statistics.median(chain.from_iterable(latencies_s))
    output = np.load(case.file(f"{row.system}.npy"), mmap_mode="r")
    exact = expected.astype(np.float64)
    row = replace(
        row,
        **outcome.told[row.system],
        latency_us=latency_s * 1e6,
        gflops=flops / latency_s / 1e9,
        max_rel_err=float(np.abs(output - exact).max() / np.abs(exact).max()),
    )
    if "ansor" not in outcome.answers:
        return row
    row = replace(
        row,
        to_own=ratio(latencies_s, outcome.latencies_s("ansor")),
        instruction=outcome.told["ansor"].get(INSTRUCTION, ""),
    )
    if any(PEAK not in answer for turns in outcome.answers["ansor"] for answer in turns):
        return row
    peaks = [[answer[PEAK] for answer in turns] for turns in outcome.answers["ansor"]]
    at_peak_s = [[flops / peak / 1e9 for peak in turns] for turns in peaks]
    return replace(
        row,
        peak_gflops=statistics.median(chain.from_iterable(peaks)),
        of_peak=1 / ratio(latencies_s, at_peak_s),
    )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def chosen_ops(ops: str, batch: int, dtype: str = "float32") -> list[str]:
    """What `--ops` means; "all" stands for all operators of a suite in a dtype.

    Raises:
        ArgumentError: no such operator or size, or the operator lacks the dtype.
    """
    every = suite(batch, dtype)
    chosen = [name for op in ops.split(",") for name in (every if op == "all" else (op,))]
    for op in chosen:
        workload_of(op, batch, dtype)
    return chosen


def default_cache() -> str:
    """Where MetaSchedule's tuning is kept if nothing else is said."""
    return str(Path(platformdirs.user_cache_dir("ansor")) / "metaschedule")


@click.command()
@click.option(
    "--ops",
    default="conv2d",
    show_default=True,
    help='Separated by commas: "C2D.2", "conv2d:height=28;width=28", or "all", the suite.',
)
@click.option(
    "--dtypes",
    default="float32",
    show_default=True,
    help="Of products and convolutions: bfloat16, int8.",
)
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="The suite's.")
@click.option(
    "--trials", type=click.IntRange(0), default=64, show_default=True, help="0 measures nothing."
)
@click.option("--peers", default="", help='Such as "zero,torch,metaschedule:128".')
@click.option("--cache", default=default_cache, help="Where MetaSchedule's tuning is kept.")
@comparison_options(rounds=3, seconds=0.1)
def main(
    ops: str,
    dtypes: str,
    batch: int,
    trials: int,
    peers: str,
    cache: str,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    file: str | None,
) -> None:
    """Tunes single operators; conv2d by default: NHWC, 56x56x64 to 64, 3x3, bias and ReLU."""
    chosen = [(op, dtype) for dtype in dtypes.split(",") for op in chosen_ops(ops, batch, dtype)]
    others = parse_peers(peers)
    cores = threads or available_cores()
    flops = peak_flops(resolve_target("native"), cores, fresh=True)
    peak = None if flops is None else flops / 1e9
    about = environment(cores, peak_gflops=peak, seed=seed, batch=batch, rounds=rounds)
    target = target_text(resolve_target("native"), cores)
    neighbours = neighbours_of(target, cores)
    rows: list[Row] = []
    found: list[dict[str, Any]] = []
    for op, dtype in chosen:
        with TemporaryDirectory() as folder:
            settings = target, cores, seed, seconds, others.trials, cache, peak or 0.0, dtype
            case = Case(op, batch, folder, *settings)
            neighbours.begin()
            rows.extend(measure(case, trials, others, rounds, neighbours.wait))
        about |= {"waited_s": neighbours.waited_s, "turns_apart": neighbours.far}
        results = [row.document() for row in rows]
        found = summary(results)
        write(file, {"environment": about, "summary": found, "results": results})
    print(table(rows))
    for line in lines(found):
        print(line)
    print(f"\npeak of this machine, measured first: {peak or 0:.0f} GFLOP/s fp32")


if __name__ == "__main__":
    main()
