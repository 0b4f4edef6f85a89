"""``ansor completion``: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Prints a script for SHELL that completes commands and options.

    For bash: eval "$(ansor completion bash)" in ~/.bashrc.
    """
    root = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    click.echo(kind(root.command, {}, "ansor", "_ANSOR_COMPLETE").source())
