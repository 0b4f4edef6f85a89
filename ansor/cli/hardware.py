"""``ansor hardware``: what is known of this machine, or of the servers of a key."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ansor.cli.rpc_options import rpc_device, rpc_options


@click.command()
@click.option("--target", default="native", show_default=True, help="As for `ansor tune`.")
@click.option("--threads", type=int, help="That programs run on; all cores by default.")
@rpc_options
def hardware(
    target: str, threads: int | None, rpc: str | None, key: str | None, linker: str | None
) -> None:
    """Shows what was detected and measured of this machine, or of a server behind TVM's RPC."""
    from ansor.targets.host.threads import available_cores
    from ansor.targets.registry import backend_of
    from ansor.targets.target import resolve_target, target_text

    device = rpc_device(rpc, key, linker, target, threads)
    if device is not None:
        with device:
            remote = device.remote()
        click.echo(f"target          {remote.target}")
        click.echo(as_lines(backend_of(remote.target).machine.describe(remote.parameters)))
        return
    resolved, cores = resolve_target(target), threads or available_cores()
    reader = backend_of(resolved).machine
    click.echo(f"target          {target_text(resolved, cores)}")
    click.echo(as_lines(reader.describe(reader.detect(resolved, cores))))


def as_lines(properties: Mapping[str, str]) -> str:
    """One line per property."""
    return "\n".join(f"{name:15s} {text}" for name, text in properties.items())
