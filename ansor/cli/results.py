"""The folder of a command's results: saved networks and their reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ansor.errors import ArgumentError

if TYPE_CHECKING:
    from ansor.run.tuned.tuned_model import TunedModel

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


def keep(models: Mapping[str, TunedModel], folders: Mapping[str, Path]) -> None:
    """Saves all networks in their folders, then makes, saves and prints their reports: those time
    things, and may be interrupted.

    Args:
        models: by name.
        folders: of each.
    """
    from ansor.frontend.deploy.runtime import CompiledModel
    from ansor.report.document.comparison_data import COMPARISON_FILE
    from ansor.report.document.inputs import write_json
    from ansor.report.document.search_data import SEARCH_FILE

    for name, model in models.items():
        model.save(folders[name] / MODEL_FILE)
        for of_earlier in (SEARCH_FILE, COMPARISON_FILE):
            (folders[name] / of_earlier).unlink(missing_ok=True)
    for name, model in models.items():
        folder = folders[name]
        benchmark = model.benchmark() if isinstance(model.compiled, CompiledModel) else None
        search = model.search_data(Path(name).name, benchmark)
        if search is not None:
            write_json(search, folder / SEARCH_FILE)
        report = model.report(benchmark)
        (folder / REPORT_FILE).write_text(f"{report}\n", encoding="utf-8")
        click.echo(report)
        click.echo(f"\ninputs: {_inputs(model)}")
        click.echo(f"saved: {folder / MODEL_FILE} (ansor.load reads it), {folder / REPORT_FILE}")


def _inputs(model: TunedModel) -> str:
    specs = model.compiled.inputs
    return ", ".join(f"{s.name} {s.dtype}[{', '.join(map(str, s.shape))}]" for s in specs)
