"""`torch.compile` with the backend "ansor", `auto_schedule`, Inductor and eager PyTorch, in turns.

``python -m benchmarks.torch_compile --models resnet18,bert --minutes 5 --json FILE``
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ansor.calls import auto_schedule
from ansor.compare.system_process import Child
from ansor.compare.turns import Outcome, ratio, take_turns
from ansor.targets.host.threads import available_cores
from benchmarks.environment import environment, write
from benchmarks.options import comparison_options
from benchmarks.torch_compile_case import (
    COMPILE,
    ERROR,
    IN_PYTORCH,
    SCHEDULED,
    SYSTEMS,
    CompileCase,
)
from benchmarks.torch_networks import NETWORKS, network

_TIMEOUT_S = 1800.0  # for an answer; the first one compiles


@dataclass(frozen=True)
class Row:
    """One system on one network.

    Attributes:
        latency_ms: of a call from Python; median over rounds and turns.
        to_auto_schedule: latency over that of `auto_schedule`, median of the ratios within turns.
        compile_s: seconds from the module to the first result, in the last round. Our systems
            have the programs of one search before.
        graphs_in_pytorch: graphs that our backend left to PyTorch.
        max_rel_err: largest difference from eager PyTorch over its largest value.
    """

    model: str
    system: str
    latency_ms: float
    to_auto_schedule: float | None
    compile_s: float
    graphs_in_pytorch: int
    max_rel_err: float


def measure(
    model: str,
    systems: Sequence[str],
    budget: dict[str, Any],
    threads: int,
    rounds: int,
    seconds: float,
    seed: int,
) -> tuple[list[Row], dict[str, Any]]:
    """Tunes a network, then times all systems in turns; the second part says how it was tuned."""
    with tempfile.TemporaryDirectory() as folder:
        file, database = str(Path(folder) / "tuned.ansor"), str(Path(folder) / "records.sqlite")
        module, inputs = network(model)
        began = time.perf_counter()
        tuned = auto_schedule(
            module, example_inputs=inputs, database=database, threads=threads, seed=seed, **budget
        )
        tuned.save(file)
        trials = 0 if tuned.finish is None else tuned.finish.trials
        about = {"model": model, "tuning_s": time.perf_counter() - began, "trials": trials}
        cases = {x: CompileCase(model, file, database, threads, x, seconds) for x in systems}
        outcome = take_turns(
            lambda name: Child(cases[name].arguments(), threads, _TIMEOUT_S),
            list(cases), rounds, seconds, print,
        )  # fmt: skip
    for name, reason in outcome.missing.items():
        print(f"{name} is left out: {reason}")
    return _rows(model, outcome), {**about, "missing": outcome.missing}


def _rows(model: str, outcome: Outcome) -> list[Row]:
    found = []
    scheduled = outcome.latencies_s(SCHEDULED) if SCHEDULED in outcome.answers else None
    for name in outcome.answers:
        samples, told = outcome.latencies_s(name), outcome.told[name]
        row = Row(
            model=model,
            system=name,
            latency_ms=1e3 * statistics.median(x for turns in samples for x in turns),
            to_auto_schedule=None if scheduled is None else ratio(samples, scheduled),
            compile_s=told[COMPILE],
            graphs_in_pytorch=told[IN_PYTORCH],
            max_rel_err=told[ERROR],
        )
        found.append(row)
    return found


def _table(rows: Sequence[Row]) -> str:
    head = ("model", "system", "latency ms", "to auto_schedule", "compile s", "error")
    lines = ["{:16s} {:20s} {:>10s} {:>16s} {:>9s} {:>8s}".format(*head)]
    for row in rows:
        to = "-" if row.to_auto_schedule is None else f"{row.to_auto_schedule:.3f}"
        figures = f"{row.latency_ms:10.3f} {to:>16s} {row.compile_s:9.1f} {row.max_rel_err:8.1e}"
        lines.append(f"{row.model:16s} {row.system:20s} {figures}")
    return "\n".join(lines)


@click.command()
@click.option("--models", default=",".join(NETWORKS), show_default=True, help="Names.")
@click.option("--systems", default=",".join(SYSTEMS), show_default=True, help="Names.")
@click.option("--minutes", type=float, help="Of tuning, each network.")
@click.option("--trials", type=int, help="Of tuning, each network; 0 measures nothing.")
@comparison_options(rounds=2, seconds=0.4)
def main(
    models: str,
    systems: str,
    minutes: float | None,
    trials: int | None,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    file: str | None,
) -> None:
    """Compares networks under `torch.compile` with the same networks tuned as a whole."""
    names, compared = models.split(","), systems.split(",")
    for kind, given, known in (("models", names, NETWORKS), ("systems", compared, SYSTEMS)):
        for name in given:
            if name not in known:
                raise click.BadParameter(f"{name}: {kind} are {', '.join(known)}")
    if minutes is None and trials is None:
        raise click.UsageError("give --minutes or --trials")
    cores = threads or available_cores()
    budget = {"minutes": minutes, "trials": trials}
    about = environment(cores, **budget, rounds=rounds, seed=seed)
    rows: list[Row] = []
    searches: list[dict[str, Any]] = []
    for name in names:
        found, search = measure(name, compared, budget, cores, rounds, seconds, seed)
        rows, searches = rows + found, [*searches, search]
        results = [asdict(row) for row in rows]
        write(file, {"environment": about, "searches": searches, "results": results})
    print(_table(rows))


if __name__ == "__main__":
    main()
