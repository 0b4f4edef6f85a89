"""Options that several benchmarks have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def comparison_options(rounds: int, seconds: float) -> Callable[[F], F]:
    """The options of a comparison in turns: --threads, --rounds, --seconds, --seed and --json.

    Args:
        rounds: default number of turns of each system.
        seconds: default time of a system in a turn.
    """
    options = [
        click.option("--threads", type=int, help="Of all systems; all cores by default."),
        click.option("--rounds", type=click.IntRange(1), default=rounds, show_default=True),
        click.option(
            "--seconds", type=float, default=seconds, show_default=True, help="Timed in a turn."
        ),
        click.option("--seed", type=int, default=0, show_default=True),
        click.option("--json", "file", metavar="FILE", help="Where results are written."),
    ]

    def decorated(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
