"""``ansor report``: a report of a tuned network or of records, as a page."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import click

from ansor.cli.choices import REPORT_FORMATS

PAGE = "report.html"

open_option = click.option(
    "--open/--no-open",
    "opens",
    default=None,
    help="In the browser; by default if a person sees the output and there is a display.",
)


@click.command()
@click.argument("source", type=click.Path(exists=True), metavar="FILE|DIR")
@click.option("--out", default=PAGE, show_default=True, metavar="FILE", help="The report.")
@click.option(
    "--format", type=click.Choice(REPORT_FORMATS), help="By default that of the suffix of --out."
)
@open_option
def report(source: str, out: str, format: str | None, opens: bool | None) -> None:
    """Writes a report of FILE|DIR: a folder of results, a saved network, a database or a log.

    The page needs no network. It has the comparison with peers, the time of each function, a
    roofline, the search, failures, and the winning programs.
    """
    from ansor.report.write import write_report

    show_report(write_report(source, out, format), opens)


def show_report(path: Path, opens: bool | None) -> None:
    """Prints the path of a report and opens it.

    Args:
        path: of the report.
        opens: whether the browser opens it; None if a person sees the output and there is a
            display.
    """
    click.echo(f"report: {path}")
    if opens or (opens is None and sys.stdout.isatty() and has_display()):
        webbrowser.open(path.resolve().as_uri())


def has_display() -> bool:
    """Whether windows can be opened."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
