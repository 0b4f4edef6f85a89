"""A network in each precision: tuned for equal times, then timed in turns.

``python -m benchmarks.precisions --models mobilenet_v2 --minutes 4 --databases DIR --json FILE``
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ansor.calls import auto_schedule
from ansor.models import model_config, model_names
from ansor.report.formatting import align
from ansor.report.progress import Progress
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.host.threads import available_cores
from benchmarks.environment import environment, write

_AUTO, _FIXED = "auto", ("bfloat16", "float32")


@dataclass(frozen=True)
class Row:
    """A network in one precision.

    Attributes:
        latency_ms: median over the rounds.
        ratio: of the latency with "auto" to this one, the median of the ratios in each round.
        trials: programs measured in this run; 0 where the database was used as it is.
    """

    model: str
    precision: str
    latency_ms: float
    ratio: float
    trials: int


def tune(model: str, precision: str, database: Path, minutes: float) -> TunedModel:
    """The network after `minutes`; a database that exists is used as it is."""
    budget: dict[str, Any] = {"trials": 0} if database.exists() else {"minutes": minutes}
    print(f"{model} in {precision}: {budget}", flush=True)
    with Progress() as progress:
        return auto_schedule(
            model, precision=precision, database=str(database), callbacks=[progress], **budget
        )


def timed(
    networks: Mapping[str, TunedModel], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Milliseconds of each network in each round."""
    samples: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(rounds):
        for name, network in networks.items():
            samples[name].append(1e3 * network.benchmark(seconds).latency_s)
    return samples


def rows(
    model: str, samples: Mapping[str, Sequence[float]], trials: Mapping[str, int]
) -> list[Row]:
    """The samples of a network in "auto" and in other precisions, summarised."""
    return [
        Row(
            model,
            precision,
            statistics.median(times),
            statistics.median(a / b for a, b in zip(samples[_AUTO], times, strict=True)),
            trials[precision],
        )
        for precision, times in samples.items()
    ]


@click.command()
@click.option("--models", default="mobilenet_v2", show_default=True, help=", ".join(model_names()))
@click.option("--precisions", default=",".join(_FIXED), show_default=True, help='Beside "auto".')
@click.option("--minutes", type=float, default=5.0, show_default=True, help="Of each tuning.")
@click.option("--databases", type=click.Path(path_type=Path), required=True, help="Folder.")
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True)
@click.option("--seconds", type=float, default=0.5, show_default=True, help="Of a turn.")
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(
    models: str,
    precisions: str,
    minutes: float,
    databases: Path,
    rounds: int,
    seconds: float,
    file: str | None,
) -> None:
    """Compares "auto" with each precision alone."""
    names = models.split(",")
    for name in names:
        model_config(name)  # a wrong name ends everything before it begins
    databases.mkdir(parents=True, exist_ok=True)
    about = environment(available_cores(), minutes=minutes, rounds=rounds, seconds=seconds)
    results: list[dict[str, Any]] = []
    all_samples: dict[str, dict[str, list[float]]] = {}
    for name in names:
        networks = {
            precision: tune(name, precision, databases / f"{name}_{precision}.sqlite", minutes)
            for precision in (_AUTO, *precisions.split(","))
        }
        samples = timed(networks, rounds, seconds)
        trials = {p: n.finish.trials if n.finish else 0 for p, n in networks.items()}
        summary = rows(name, samples, trials)
        all_samples[name] = samples
        results += [asdict(row) for row in summary]
        _show(summary)
        write(file, {"environment": {**about, "samples_ms": all_samples}, "results": results})


def _show(summary: Sequence[Row]) -> None:
    head = ("model", "precision", "ms", "auto's ratio", "trials")
    lines = [
        (r.model, r.precision, f"{r.latency_ms:.2f}", f"{r.ratio:.3f}", str(r.trials))
        for r in summary
    ]
    print(align(head, lines, (0, 1)), flush=True)


if __name__ == "__main__":
    main()
