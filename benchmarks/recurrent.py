"""Recurrent layers: tuned, and by PyTorch with one thread and with as many, in turns.

``python -m benchmarks.recurrent --kinds lstm,gru --minutes 1 --json FILE``
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ansor.calls import auto_schedule
from ansor.compare.system_process import Child
from ansor.compare.turns import Outcome, ratio, take_turns
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.host.threads import available_cores
from benchmarks.environment import environment, write
from benchmarks.options import comparison_options
from benchmarks.recurrent_case import (
    ERROR,
    INPUTS,
    KINDS,
    LAYERS,
    OWN,
    STEPS,
    UNITS,
    RecurrentCase,
    example,
    layer,
)

_TIMEOUT_S = 120.0  # for an answer


@dataclass(frozen=True)
class Row:
    """One system on one layer.

    Attributes:
        latency_ms: of a call from Python; median over rounds and turns.
        to_own: latency over ours, median of the ratios within turns.
        tuning_s: seconds from the call to the tuned network, None for what is not tuned.
        max_rel_err: largest difference from PyTorch's output over its largest value.
    """

    layer: str
    system: str
    threads: int
    latency_ms: float
    to_own: float
    tuning_s: float | None
    max_rel_err: float


def measure(
    kind: str, minutes: float, threads: int, rounds: int, seconds: float, seed: int
) -> list[Row]:
    """Tunes a layer, then times it and PyTorch in turns."""
    began = time.perf_counter()
    tuned: TunedModel = auto_schedule(
        layer(kind), example_inputs=example(), minutes=minutes, threads=threads, seed=seed
    )
    tuning_s = time.perf_counter() - began
    print(tuned.report(), end="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "tuned.ansor")
        tuned.save(file)
        cases = _systems(kind, file, threads, seconds)
        outcome = take_turns(
            lambda name: Child(cases[name].arguments(), cases[name].threads, _TIMEOUT_S),
            list(cases), rounds, seconds, print,
        )  # fmt: skip
    for name, reason in outcome.missing.items():
        print(f"{name} is left out: {reason}")
    return _rows(kind, cases, outcome, tuning_s)


def _systems(kind: str, file: str, threads: int, seconds: float) -> dict[str, RecurrentCase]:
    peers = {f"torch, {n} threads": n for n in sorted({1, threads})}
    counts = {OWN: threads, **peers}
    return {
        name: RecurrentCase(kind, file, count, OWN if name == OWN else "torch", seconds)
        for name, count in counts.items()
    }


def _rows(
    kind: str, cases: dict[str, RecurrentCase], outcome: Outcome, tuning_s: float
) -> list[Row]:
    own = outcome.latencies_s(OWN)
    found = []
    for name in outcome.answers:
        samples = outcome.latencies_s(name)
        latency_s = statistics.median(sample for turns in samples for sample in turns)
        row = Row(
            layer=kind,
            system=name,
            threads=cases[name].threads,
            latency_ms=1e3 * latency_s,
            to_own=ratio(samples, own),
            tuning_s=tuning_s if name == OWN else None,
            max_rel_err=outcome.told[name][ERROR],
        )
        found.append(row)
    return found


def _table(rows: list[Row]) -> str:
    lines = [f"{'layer':6s} {'system':18s} {'latency µs':>10s} {'to ansor':>9s} {'error':>9s}"]
    for row in rows:
        latency_us = 1e3 * row.latency_ms
        figures = f"{latency_us:10.1f} {row.to_own:9.2f} {row.max_rel_err:9.1e}"
        lines.append(f"{row.layer:6s} {row.system:18s} {figures}")
    return "\n".join(lines)


@click.command()
@click.option("--kinds", default="lstm,gru", show_default=True, help=", ".join(KINDS))
@click.option("--minutes", type=float, default=1.0, show_default=True, help="Of tuning, each.")
@comparison_options(rounds=3, seconds=0.2)
def main(
    kinds: str,
    minutes: float,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
    file: str | None,
) -> None:
    """Compares recurrent layers with PyTorch's."""
    names = kinds.split(",")
    for name in names:
        if name not in KINDS:
            raise click.BadParameter(f"{name}: kinds are {', '.join(KINDS)}")
    cores = threads or available_cores()
    sizes: dict[str, Any] = {"inputs": INPUTS, "units": UNITS, "layers": LAYERS, "steps": STEPS}
    about = environment(cores, sizes=sizes, minutes=minutes, rounds=rounds, seed=seed)
    rows: list[Row] = []
    for name in names:
        rows += measure(name, minutes, cores, rounds, seconds, seed)
        write(file, {"environment": about, "results": [asdict(row) for row in rows]})
    print(_table(rows))


if __name__ == "__main__":
    main()
