"""``ansor demo``: tunes a built-in network and compares it with what else is installed."""

from __future__ import annotations

import tempfile

import click

from ansor.cli.choices import PEERS
from ansor.cli.report import PAGE, open_option, show_report
from ansor.cli.results import keep, prepare_folder

_PEERS = ", ".join(PEERS)


@click.command()
@click.option(
    "--model", default="resnet18", show_default=True, help="`ansor show models` lists them."
)
@click.option("--minutes", type=float, default=4.5, show_default=True, help="For tuning.")
@click.option("--trials", type=int, help="Programs to measure, at most.")
@click.option("--threads", type=int, help="That every system uses; all cores by default.")
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Of the comparison."
)
@click.option(
    "--peers", default="torch,onnxruntime", show_default=True, help=f"Of {', '.join(PEERS)}."
)
@click.option("--out", default="ansor-out", show_default=True, metavar="DIR", help="For results.")
@open_option
def demo(
    model: str,
    minutes: float,
    trials: int | None,
    threads: int | None,
    rounds: int,
    peers: str,
    out: str,
    opens: bool | None,
) -> None:
    """Tunes a built-in network for this CPU and compares it with its untuned form and with peers.

    Peers that are not installed are left out. Ctrl-C ends the search with the best so far.
    """
    from ansor.calls import auto_schedule
    from ansor.compare.case import Case
    from ansor.compare.comparison_table import comparison_table
    from ansor.compare.report_data import comparison_data
    from ansor.compare.rounds import compare, peer_systems, save_networks
    from ansor.models import model_config
    from ansor.report.document.comparison_data import COMPARISON_FILE
    from ansor.report.document.inputs import write_json
    from ansor.report.extra import MissingPackageError
    from ansor.report.progress import Progress
    from ansor.report.write import write_report
    from ansor.targets.host.threads import available_cores

    model_config(model)
    systems = peer_systems(filter(None, peers.split(",")))
    folder = prepare_folder(out)
    click.echo(f"tuning {model} for this machine, {minutes:g} minutes at most")
    with Progress() as progress:
        tuned = auto_schedule(
            model, minutes=minutes, trials=trials, threads=threads, callbacks=[progress]
        )
    keep({model: tuned}, {model: folder})
    with tempfile.TemporaryDirectory() as temporary:
        case = Case(model, temporary, threads or available_cores())
        save_networks(tuned, case)
        comparison = compare(case, systems, rounds, click.echo)
    write_json(comparison_data(comparison, case.threads), folder / COMPARISON_FILE)
    click.echo(f"\n{comparison_table(comparison)}\n")
    try:
        show_report(write_report(folder, folder / PAGE), opens)
    except MissingPackageError as error:
        click.echo(f"no {PAGE}: {error}")
