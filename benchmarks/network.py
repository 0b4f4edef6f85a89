"""Whole networks: tuned, untuned, and by peers with the same threads, weights and inputs.

``python -m benchmarks.network --models resnet18 --precision bfloat16 --peers torch,openvino
--minutes 5 --json FILE``
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from ansor.calls import auto_schedule
from ansor.compare.case import Case
from ansor.compare.comparison_table import comparison_table
from ansor.compare.results import Comparison
from ansor.compare.rounds import (
    compare,
    peer_systems,
    prepare_low_precision,
    save_networks,
)
from ansor.compare.systems import PEERS
from ansor.models import model_config, model_names
from ansor.report.progress import Progress
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.host.threads import available_cores
from ansor.targets.registry import backend_of
from ansor.targets.target import check_runs_here, resolve_target
from benchmarks.environment import environment, write
from benchmarks.options import comparison_options


@dataclass(frozen=True)
class Budget:
    """How a network is tuned."""

    minutes: float | None
    trials: int | None
    database: str | None
    seed: int
    target: str = "native"
    precision: str = "float32"


@dataclass(frozen=True)
class Row:
    """One system on one network.

    Attributes:
        latency_ms: median over rounds, each the median of the runs of a turn.
        to_own: latency over that of our tuned network, median over the rounds.
        tuning_s: seconds of tuning, None for what is not tuned.
        trials: programs measured, None for what is not tuned.
        max_rel_err: largest difference from PyTorch's output (or the untuned network's, without
            PyTorch) in float32, over its largest value.
        squared_error: normalised mean squared error against the same.
        cosine: of the angle between both.
        precision: that the system computed in.
    """

    model: str
    system: str
    latency_ms: float
    to_own: float | None
    tuning_s: float | None
    trials: int | None
    max_rel_err: float
    squared_error: float
    cosine: float
    precision: str


def measure(
    model: str, systems: Sequence[str], threads: int, budget: Budget, rounds: int, seconds: float
) -> tuple[list[Row], Comparison]:
    """Tunes a network, then times all systems in turns."""
    with tempfile.TemporaryDirectory() as folder:
        device = "cuda" if budget.target.startswith("cuda") else "cpu"
        target = resolve_target(budget.target)
        tf32 = bool(backend_of(target).execution.rounded_dtypes(target))
        settings = threads, seconds / 4, seconds, device, tf32, budget.precision
        case = Case(model, folder, *settings)
        if case.is_low:
            prepare_low_precision(case)
        began = time.perf_counter()
        tuned = tune(case.source, threads, budget)
        tuning_s = time.perf_counter() - began
        print(tuned.report(), end="\n\n")
        save_networks(tuned, case)
        comparison = compare(case, systems, rounds, print)
    print(f"\n{model}\n{comparison_table(comparison)}\n")
    return _rows(model, comparison, tuning_s, tuned), comparison


def tune(model: str, threads: int, budget: Budget) -> TunedModel:
    """The network after its budget; a quantised one has its precision in itself."""
    with Progress() as progress:
        return auto_schedule(
            model,
            budget.target,
            minutes=budget.minutes,
            trials=budget.trials,
            seed=budget.seed,
            database=budget.database,
            callbacks=[progress],
            threads=threads,
            precision="float32" if budget.precision == "int8" else budget.precision,
        )


def _rows(model: str, comparison: Comparison, tuning_s: float, tuned: TunedModel) -> list[Row]:
    trials = tuned.finish.trials if tuned.finish else 0
    return [
        Row(
            model=model,
            system=result.system,
            latency_ms=result.latency_s * 1e3,
            to_own=comparison.to_own(result),
            tuning_s=tuning_s if result.system == "ansor" else None,
            trials=trials if result.system == "ansor" else None,
            max_rel_err=result.difference,
            squared_error=result.squared_error,
            cosine=result.cosine,
            precision=result.precision,
        )
        for result in comparison.results
    ]


def _samples_ms(comparison: Comparison) -> dict[str, list[list[float]]]:
    """Latencies by round and turn."""
    return {
        r.system: [[1e3 * sample for sample in turns] for turns in r.samples_s]
        for r in comparison.results
    }


@click.command()
@click.option("--models", default="resnet18", show_default=True, help=", ".join(model_names()))
@click.option("--target", default="native", show_default=True, help='"cuda" for a GPU.')
@click.option("--peers", default="", help="Of torch, inductor, onnxruntime, openvino.")
@click.option("--precision", type=click.Choice([*PEERS]), default="float32", show_default=True)
@click.option("--minutes", type=float, help="Tuning time of each network; 5 without --trials.")
@click.option("--trials", type=int, help="Programs to measure; 0 uses the database as it is.")
@click.option("--database", metavar="FILE", help="Records, read and extended.")
@comparison_options(rounds=3, seconds=0.4)
def main(
    models: str,
    target: str,
    peers: str,
    precision: str,
    minutes: float | None,
    trials: int | None,
    database: str | None,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    file: str | None,
) -> None:
    """Compares whole networks with peers."""
    names = models.split(",")
    for name in names:
        model_config(name)  # a wrong name ends everything before it begins
    check_runs_here(resolve_target(target))
    systems = peer_systems(filter(None, peers.split(",")), precision)
    cores = threads or available_cores()
    if minutes is None and trials is None:
        minutes = 5.0
    rows: list[dict[str, Any]] = []
    samples, missing = {}, {}
    budget = Budget(minutes, trials, database, seed, target, precision)
    about = environment(cores, budget=asdict(budget), rounds=rounds)
    for name in names:
        found, comparison = measure(name, systems, cores, budget, rounds, seconds)
        rows += [asdict(row) for row in found]
        samples[name], missing[name] = _samples_ms(comparison), comparison.missing
        more = {"samples_ms": samples, "missing": missing}
        write(file, {"environment": {**about, **more}, "results": rows})


if __name__ == "__main__":
    main()
