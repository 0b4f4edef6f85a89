"""``ansor export-metaschedule``: a network for plain TVM, with MetaSchedule's records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ansor.cli.choices import MODEL_HELP
from ansor.cli.results import prepare_folder

if TYPE_CHECKING:
    from ansor.run.tuned.tuned_model import TunedModel


@click.command("export-metaschedule", epilog=MODEL_HELP)
@click.argument("model")
@click.option("--out", required=True, metavar="DIR", help="A new folder.")
@click.option("--database", metavar="FILE", help="Records of MODEL, which is not a saved network.")
@click.option("--target", default="native", show_default=True, help="As MODEL was tuned for.")
@click.option("--threads", type=int, help="All cores by default.")
@click.option("--traces", is_flag=True, help="Programs as traces of the schedule.")
def export_metaschedule(
    model: str, out: str, database: str | None, target: str, threads: int | None, traces: bool
) -> None:
    """Writes a tuned MODEL for plain TVM: a module, and records that apply to it.

    MODEL is a network that `ansor tune` saved. With --traces it is a model, and --database has its
    programs.
    """
    from ansor.frontend.deploy.metaschedule import NETWORK_FILE

    folder = prepare_folder(out)
    count = _tuned(model, database, target, threads).export_metaschedule(folder, traces)
    click.echo(f"saved: {folder / NETWORK_FILE}, and {count} records beside it")


def _tuned(model: str, database: str | None, target: str, threads: int | None) -> TunedModel:
    from ansor.calls import auto_schedule
    from ansor.cli.model_argument import parse_model
    from ansor.run.tuned.saved import load

    if Path(model).suffix == ".ansor":
        return load(model, threads)
    return auto_schedule(
        parse_model(model), target, trials=0, database=database, threads=threads, check_import=False
    )
