"""Options that fix a model's dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from ansor.errors import ArgumentError

if TYPE_CHECKING:
    from ansor.frontend.importers.sizes import Sizes

Command = TypeVar("Command", bound=Callable[..., object])

_SHAPE = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="INPUT=N,N,...",
    help="Shape of an input with dynamic dimensions; may be repeated.",
)
_DIM = click.option(
    "--dim",
    "dims",
    multiple=True,
    metavar="NAME=N",
    help="Size of a dynamic dimension; may be repeated. Else: 1, or that of the export's example.",
)


def size_options(command: Command) -> Command:
    """Gives a command the options `--shape` and `--dim`."""
    return _SHAPE(_DIM(command))


def read_sizes(shapes: Sequence[str], dims: Sequence[str]) -> Sizes:
    """The sizes of the options.

    Raises:
        ArgumentError: not of their form, a name twice, or a negative size.
    """
    from ansor.frontend.importers.sizes import Sizes

    found = {name: _integers("shape", text, part) for text, name, part in _pairs("shape", shapes)}
    sizes = {name: _integers("dim", text, part) for text, name, part in _pairs("dim", dims)}
    several = [name for name, size in sizes.items() if len(size) != 1]
    if several:
        raise ArgumentError("dim", several[0], "give one size")
    given = {name: size for name, (size,) in sizes.items()}
    return Sizes(found, given, default=1)  # of what no option names: most often the batch


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str, str]]:
    found, seen = [], set()
    for text in texts:
        name, equals, rest = text.rpartition("=")  # names may hold an equals sign
        if not (name and equals) or name in seen:
            remedy = "give each name once, as " + ("x=1,3,224,224" if option == "shape" else "n=1")
            raise ArgumentError(option, text, remedy)
        seen.add(name)
        found.append((text, name, rest))
    return found


def _integers(option: str, text: str, part: str) -> tuple[int, ...]:
    parts = [one.strip() for one in part.split(",")] if part.strip() else []
    if not all(one.isdecimal() for one in parts):
        raise ArgumentError(option, text, "give sizes as whole numbers, not negative")
    return tuple(int(one) for one in parts)
