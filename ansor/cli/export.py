"""``ansor export``: a folder from which C, C++ and Python run a network without a compiler."""

from __future__ import annotations

import click


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("folder", metavar="DIR")
@click.option(
    "--runtime",
    metavar="DIR",
    help="Folder with TVM's runtime libraries for the target; by default those of this "
    "installation, if the target has the architecture of this machine.",
)
def export(model: str, folder: str, runtime: str | None) -> None:
    """Writes MODEL, a network that `ansor tune` saved, to a new folder.

    The folder has machine code, weights, an interface in C, and programs in C++ and Python.
    """
    from ansor.run.tuned.saved import export_saved

    export_saved(model, folder, runtime)
    click.echo(f"saved: {folder} (its README.md has the next steps)")
