"""Numbers and tables as plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_GAP = "  "


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        header: its title.
        is_text: whether it is aligned to the left; numbers are aligned to the right.
        most: characters of a cell, None for no limit; longer texts lose their middle.
    """

    header: str
    is_text: bool = False
    most: int | None = None

    def fit(self, cell: str) -> str:
        """A cell's text within the limit."""
        return cell if self.most is None else shorten(cell, self.most)


def align_columns(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table with a rule below its header."""
    fitting = [[c.fit(cell) for c, cell in zip(columns, row, strict=True)] for row in rows]
    left = [number for number, column in enumerate(columns) if column.is_text]
    return align([column.header for column in columns], fitting, left)


def align(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """A table with a rule below its header; columns are right-aligned but those in `left`."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = [_line(cells, widths, left) for cells in (header, rule, *rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()


def milliseconds(seconds: float | None) -> str:
    """Three significant digits or more, "-" for None."""
    return "-" if seconds is None else significant(seconds * 1e3)


def duration(seconds: float) -> str:
    """Whole seconds, or minutes and seconds from two minutes on."""
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def microseconds(seconds: float | None) -> str:
    """Three significant digits or more, "-" for None."""
    return "-" if seconds is None else significant(seconds * 1e6)


def gflops(flops: int, seconds: float | None) -> str:
    """Billions of operations per second, "-" where there are none or no time."""
    return "-" if not seconds or not flops else significant(flops / seconds / 1e9)


def percent(part: float | None, whole: float | None) -> str:
    """`part` of `whole`, "-" where either is not known."""
    return "-" if part is None or not whole else f"{100 * part / whole:.1f}%"


def failures(errors: Mapping[str, int]) -> str:
    """Counts of failures by kind: "2 build, 1 crash"; "" if there are none."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(errors.items()))


def shorten(text: str, most: int) -> str:
    """At most `most` characters of the first line, without the middle."""
    line = text.strip().partition("\n")[0]
    if len(line) <= most:
        return line
    head = (most - 1) // 2
    return f"{line[:head]}…{line[len(line) - (most - 1 - head) :]}"


def significant(value: float) -> str:
    """Three digits or all before the point, no exponent."""
    if value <= 0:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"
