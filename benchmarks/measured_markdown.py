"""Tables and numbers of `benchmarks.measured`, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.report.formatting import significant

NONE = "-"  # the cell of a figure that does not exist


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """A table; columns are right-aligned but those in `left`."""
    rule = ["---" if column in left else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def digits(value: float | None) -> str:
    """Three digits, or all digits before the point if there are more."""
    return NONE if value is None else significant(value)


def thousands(value: float | None) -> str:
    """Three digits that are not zero at most, with commas."""
    return NONE if value is None else f"{float(f'{value:.3g}'):,.0f}"


def number(value: float | None, form: str) -> str:
    """The value in a format of Python."""
    return NONE if value is None else format(value, form)
