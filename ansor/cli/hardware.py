"""``ansor hardware``: what is known of this machine."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ansor.targets.host.threads import available_cores
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target, target_text


@click.command()
@click.option("--target", default="native", show_default=True)
@click.option("--threads", type=int, help="That programs run on; all cores by default.")
def hardware(target: str, threads: int | None) -> None:
    """Shows what was detected and measured of this machine."""
    resolved, cores = resolve_target(target), threads or available_cores()
    reader = backend_of(resolved).machine
    click.echo(f"target          {target_text(resolved, cores)}")
    click.echo(as_lines(reader.describe(reader.detect(resolved, cores))))


def as_lines(properties: Mapping[str, str]) -> str:
    """One line per property."""
    return "\n".join(f"{name:15s} {text}" for name, text in properties.items())
