"""`write_report`: a report in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ansor.errors import ArgumentError
from ansor.report.document.collect import collect
from ansor.report.document.document import Document
from ansor.report.extra import require
from ansor.report.markdown import markdown

FORMATS = ("html", "markdown", "json")
_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
_FORMAT, _VERSION = "ansor-report", 1  # of the JSON


def write_report(
    source: str | os.PathLike[str], out: str | os.PathLike[str], format: str | None = None
) -> Path:
    """Writes a report of a tuned network, or of the records in a database.

    Args:
        source: a folder that `ansor tune` or `ansor demo` wrote, a saved network, a database or a
            log.
        out: the file of the report.
        format: "html", "markdown" or "json"; by default that of the suffix of `out`.

    Returns:
        the path of the report.

    Raises:
        ArgumentError: there is no such source, the format is unknown, or the file cannot be
            written.
        StorageError: a file of a network is damaged.
        DatabaseError: a database is damaged.
        MissingPackageError: a package of the extra `report` is not installed.
    """
    return write_document(lambda: collect(source), out, format)


def write_document(
    document: Callable[[], Document], out: str | os.PathLike[str], format: str | None
) -> Path:
    """Writes a document that is made after the other arguments have been checked.

    Args:
        document: makes it.

    Other arguments, the result and errors are those of `write_report`.
    """
    path = Path(out)
    render = renderer(format or format_of(path))
    text = render(document())
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            "out", str(out), f"cannot be written; give another path: {error}"
        ) from error
    return path


def format_of(path: Path) -> str:
    """The format that a suffix stands for.

    Raises:
        ArgumentError: it stands for none.
    """
    if path.suffix not in _SUFFIXES:
        raise ArgumentError("out", str(path), f"end it with one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[path.suffix]


def renderer(format: str) -> Callable[[Document], str]:
    """The function that makes the text of a report.

    Raises:
        ArgumentError: the format is unknown.
        MissingPackageError: a package is not installed.
    """
    if format not in FORMATS:
        raise ArgumentError("format", format, f"give one of {', '.join(FORMATS)}")
    if format == "markdown":
        return markdown
    if format == "json":
        return json_text
    require("altair", "jinja2", "vl_convert")
    # The packages are optional: they are imported only here.
    from ansor.report.html.page import page

    return page


def json_text(document: Document) -> str:
    """A report as JSON: the fields of `Document`, with a name and a version of the format."""
    values = {"format": _FORMAT, "version": _VERSION, **asdict(document)}
    return json.dumps(values, indent=1, allow_nan=False) + "\n"
