"""``ansor tune``: searches for fast programs of one or several models and saves the results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from ansor.cli.choices import (
    DEFAULT_POLICY,
    DEFAULT_PRECISION,
    MODEL_HELP,
    POLICIES,
    PRECISIONS,
)
from ansor.cli.results import keep, prepare_folder
from ansor.cli.rpc_options import rpc_device, rpc_options
from ansor.cli.size_options import read_sizes, size_options
from ansor.config import CHECK, FULL, QUICK
from ansor.errors import ArgumentError

PRESETS = {"quick": QUICK, "full": FULL}
_BUDGETS = ("minutes", "trials", "trials_per_task", "early_stopping")


@click.command(epilog=MODEL_HELP)
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--target", default="native", show_default=True, help='E.g. "llvm -mcpu=skylake" or graviton3.'
)
@click.option(
    "--minutes",
    type=float,
    help=f"Time for everything; {FULL.default_minutes:.0f} without another budget, if this machine "
    "runs the programs.",
)
@click.option(
    "--trials", type=int, help="Programs to measure; 0 takes the best that the database knows."
)
@click.option("--trials-per-task", type=int, help="Programs of each task to measure.")
@click.option("--early-stopping", type=int, help="Trials of a task without a gain that end it.")
@click.option(
    "--tasks",
    multiple=True,
    metavar="NAME",
    help="A function to tune, or an operator such as conv2d; may be repeated. All by default.",
)
@click.option("--only-new", is_flag=True, help="Search only functions without records.")
@click.option("--database", metavar="FILE", help="Records, read and extended.")
@click.option(
    "--resume/--no-resume",
    default=True,
    show_default=True,
    help="Go on with an interrupted run of the same command, if the database knows one.",
)
@click.option("--log", metavar="FILE", help="Gets a line of JSON for each measurement.")
@click.option(
    "--transfer",
    multiple=True,
    metavar="FILE",
    help="Log or database of earlier runs to begin with and to learn from; may be repeated.",
)
@click.option("--seeds", metavar="DIR", help="A database of MetaSchedule to begin with.")
@click.option("--out", default="ansor-out", show_default=True, metavar="DIR", help="For results.")
@click.option("--threads", type=int, help="That programs run on; all cores by default.")
@click.option(
    "--cluster", metavar="ADDRESS", help="Measures on a Ray cluster: its HOST:PORT, or auto."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all randomness.")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    default="full",
    show_default=True,
    help="Sizes of the search.",
)
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default=DEFAULT_POLICY,
    show_default=True,
    help="Search of each function; with +draft, what the draft calls slow is left out.",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default=DEFAULT_PRECISION,
    show_default=True,
    help="What products multiply; sums are in float32.",
)
@click.option(
    "--max-error",
    type=float,
    help="Normalised mean squared error that another precision may make; by default "
    f"{CHECK.max_squared_error:g}.",
)
@size_options
@rpc_options
@click.option(
    "--check/--no-check",
    "check_import",
    default=True,
    show_default=True,
    help="Compare with the original model, in PyTorch or ONNX Runtime.",
)
@click.option(
    "--until-ms", type=float, help="A network whose functions take no longer gets no more time."
)
def tune(
    models: tuple[str, ...],
    target: str,
    out: str,
    preset: str,
    until_ms: float | None,
    cluster: str | None,
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    rpc: str | None,
    key: str | None,
    linker: str | None,
    **settings: Any,
) -> None:
    """Searches for fast programs of one or several MODELs and saves them compiled.

    Several share the time and their common functions. Ctrl-C ends the search with the best so far.
    """
    from ansor.calls import auto_schedule_many
    from ansor.cli.model_argument import parse_model
    from ansor.report.progress import Progress
    from ansor.run.arguments import RAY
    from ansor.targets.target import resolve_target, runs_here
    from ansor.task_scheduler.objective import LatencyRequirement, total_latency

    sizes = read_sizes(shapes, dims)
    folders = _folders(models, out)
    config = PRESETS[preset]
    remote = rpc_device(rpc, key, linker, target, settings["threads"], config.measure)
    if remote is not None and cluster is not None:
        raise ArgumentError("cluster", cluster, "give --rpc or --cluster")
    if remote is not None:
        settings["threads"] = None
    is_measured = remote is not None or runs_here(resolve_target(target))
    if all(settings[limit] is None for limit in _BUDGETS) and is_measured:
        settings["minutes"] = config.default_minutes
    with remote or nullcontext(), Progress() as progress:
        tuned = auto_schedule_many(
            {name: parse_model(name) for name in folders},
            target,
            sizes=dict.fromkeys(folders, sizes),
            config=config,
            objective=total_latency if until_ms is None else LatencyRequirement(until_ms * 1e-3),
            callbacks=[progress],
            device=remote if cluster is None else f"{RAY}:{cluster}",
            **{name: value for name, value in settings.items() if value != ()},
        )
    keep(tuned, folders)


def _folders(models: Sequence[str], out: str) -> dict[str, Path]:
    """The folder of each model's result: the folder itself, or a folder in it for each model.

    Raises:
        ArgumentError: two results would lie in the same place, or it cannot be written to.
    """
    names = [Path(model).stem for model in models]
    if len(set(names)) < len(names):
        raise ArgumentError("models", " ".join(models), "name each once")
    places = [Path(out) / name for name in names] if len(names) > 1 else [Path(out)]
    return {m: prepare_folder(str(p)) for m, p in zip(models, places, strict=True)}
