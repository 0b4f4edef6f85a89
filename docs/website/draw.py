"""Draws the pictures of the pages about concepts: ``python -m docs.website.draw``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import click

from docs.website import cache_levels, derivation, search_loop

FOLDER = Path(__file__).parents[1] / "concepts"
PICTURES: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "derivation.svg": derivation.draw,
        "cache_levels.svg": cache_levels.draw,
        "search_loop.svg": search_loop.draw,
    }
)


@click.command()
def main() -> None:
    """Writes all pictures."""
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        click.echo(FOLDER / name)


if __name__ == "__main__":
    main()
