"""The folder of a command's results: saved networks and their reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ansor.errors import ArgumentError

if TYPE_CHECKING:
    from ansor.run.tuned import TunedModel

MODEL_FILE, REPORT_FILE = "model.ansor", "report.txt"


def prepare_folder(path: str) -> Path:
    """Makes the folder for results, before any work starts.

    Raises:
        ArgumentError: it cannot be made or written to.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".ansor-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ArgumentError(
            "out", path, f"give a folder that can be written to: {error}"
        ) from error
    return folder


def write_text(argument: str, file: Path, text: str) -> None:
    """Writes a file.

    Args:
        argument: that names the file.
        file: to write.
        text: all of it.

    Raises:
        ArgumentError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        remedy = f"give a file that can be written: {error.strerror}"
        raise ArgumentError(argument, str(file), remedy) from error


def keep(models: Mapping[Path, TunedModel]) -> None:
    """Saves all networks in their folders, then makes, saves and prints their reports: those time
    things, and may be interrupted."""
    for folder, model in models.items():
        model.save(folder / MODEL_FILE)
    for folder, model in models.items():
        report = model.report()
        (folder / REPORT_FILE).write_text(f"{report}\n", encoding="utf-8")
        click.echo(report)
        click.echo(f"\ninputs: {_inputs(model)}")
        click.echo(f"saved: {folder / MODEL_FILE} (ansor.load reads it), {folder / REPORT_FILE}")


def _inputs(model: TunedModel) -> str:
    specs = model.compiled.inputs
    return ", ".join(f"{s.name} {s.dtype}[{', '.join(map(str, s.shape))}]" for s in specs)
