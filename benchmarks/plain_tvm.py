"""A tuned network, and what it exports in plain TVM: final functions, and traces, in turns.

``python -m benchmarks.plain_tvm --model resnet18 --trials 0 --json FILE``
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from ansor.calls import auto_schedule
from ansor.compare.system_process import Child
from ansor.compare.turns import Outcome, ratio, take_turns
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.host.threads import available_cores
from benchmarks.environment import environment, write
from benchmarks.options import comparison_options
from benchmarks.plain_tvm_case import OUTPUT, PlainCase

OWN, FINAL, TRACES = "ansor", "final functions", "traces"
_TIMEOUT_S = 300.0  # for an answer


@dataclass(frozen=True)
class Row:
    """The network in one system.

    Attributes:
        latency_ms: of a call from Python; median over rounds and turns.
        to_own: latency over ours, median of the ratios within turns.
        max_rel_err: largest difference of the first outputs from ours over their largest value.
    """

    system: str
    latency_ms: float
    to_own: float
    max_rel_err: float


def measure(model: TunedModel, rounds: int, seconds: float) -> list[Row]:
    """Times a network and its exports in turns."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / name.replace(" ", "_")) for name in (OWN, FINAL, TRACES)}
        model.save(paths[OWN])
        model.export_metaschedule(paths[FINAL])
        model.export_metaschedule(paths[TRACES], traces=True)
        (spec,) = model.compiled.inputs
        threads = model.compiled.threads
        cases = {name: PlainCase(p, spec.shape, threads, seconds) for name, p in paths.items()}
        outcome = take_turns(
            lambda name: Child(cases[name].arguments(), threads, _TIMEOUT_S),
            list(cases), rounds, seconds, print,
        )  # fmt: skip
    for name, reason in outcome.missing.items():
        print(f"{name} is left out: {reason}")
    return [_row(name, outcome) for name in outcome.answers]


def _row(name: str, outcome: Outcome) -> Row:
    samples, own = outcome.latencies_s(name), outcome.latencies_s(OWN)
    found, expected = (np.asarray(outcome.told[each][OUTPUT]) for each in (name, OWN))
    latency_s = statistics.median(sample for turns in samples for sample in turns)
    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    return Row(name, 1e3 * latency_s, ratio(samples, own), difference)


@click.command()
@click.option("--model", default="resnet18", show_default=True, help="A built-in network.")
@click.option("--trials", type=int, default=0, show_default=True, help="0: the draft chooses.")
@click.option("--database", metavar="FILE", help="Records of the network.")
@comparison_options(rounds=3, seconds=0.3)
def main(
    model: str,
    trials: int,
    database: str | None,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    file: str | None,
) -> None:
    """Compares a tuned network with its exports in plain TVM."""
    cores = threads or available_cores()
    about = environment(cores, model=model, trials=trials, rounds=rounds, seed=seed)
    tuned = auto_schedule(
        model, trials=trials, database=database, threads=cores, seed=seed, check_import=False
    )
    rows = measure(tuned, rounds, seconds)
    write(file, {"environment": about, "results": [asdict(row) for row in rows]})
    for row in rows:
        print(f"{row.system:16s} {row.latency_ms:9.3f} ms {row.to_own:6.3f} {row.max_rel_err:.1e}")


if __name__ == "__main__":
    main()
