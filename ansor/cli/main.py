"""The command line's entry point."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from ansor.cli.completion import completion
from ansor.cli.database import database_commands
from ansor.cli.demo import demo
from ansor.cli.doctor import doctor
from ansor.cli.explain import explain
from ansor.cli.export import export
from ansor.cli.hardware import hardware
from ansor.cli.metaschedule import export_metaschedule
from ansor.cli.quantize import quantize
from ansor.cli.report import report
from ansor.cli.show import show
from ansor.cli.tune import tune
from ansor.errors import AnsorError
from ansor.version import __version__


class Failure(click.ClickException):
    """An error that the user can act on: one line, no trace."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes the line to standard error."""
        click.echo(f"ansor: {self.message}", file=file or sys.stderr)


class Interrupted(Failure):
    """The user ended a command with Ctrl-C."""

    exit_code = 130  # of shells for a process that SIGINT ended


class Commands(click.Group):
    """A group whose commands fail with `Failure`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command."""
        try:
            return super().invoke(ctx)
        except AnsorError as error:
            raise Failure(" ".join(str(error).split())) from error
        except KeyboardInterrupt as interrupt:
            raise Interrupted("interrupted") from interrupt


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Turns models and operators into fast machine code by searching."""


for command in (
    tune,
    quantize,
    show,
    explain,
    report,
    hardware,
    doctor,
    database_commands,
    demo,
    export,
    export_metaschedule,
    completion,
):
    main.add_command(command)
