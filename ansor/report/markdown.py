"""A report as Markdown: the tables and texts of the page, without its plots."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from ansor.report.document.comparison_data import ComparisonData
from ansor.report.document.document import Document, FunctionRow, ProgramText
from ansor.report.formatting import (
    gflops,
    microseconds,
    milliseconds,
    percent,
    significant,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")
_FUNCTION_HEADER = (
    *("function", "calls", "latency µs", "share", "GFLOP/s", "of peak"),
    *("× untuned", "programs", "failed", "variant"),
)


def markdown(document: Document) -> str:
    """A report as Markdown; texts of the document are escaped."""
    return "\n\n".join(_blocks(document)) + "\n"


def _blocks(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield "\n".join(_summary(document))
    yield "## Comparison with peers"
    yield from _missing(document, "comparison")
    if document.comparison is not None:
        yield _comparison(document.comparison)
    yield "## Time of each function"
    yield from _missing(document, "machine")
    yield table(_FUNCTION_HEADER, [_function(row) for row in document.functions], text=(0, 9))
    yield "## Search"
    yield from _missing(document, "network_curve")
    yield from _search(document)
    yield "## Failures"
    yield _failures(document)
    yield "## Winning programs"
    yield from _missing(document, "programs")
    for program in document.programs:
        yield _program(program)
    yield "## Environment"
    yield from _missing(document, "environment")
    properties = {} if document.machine is None else document.machine.properties
    pairs = {**document.environment, **properties}
    yield table(("name", "value"), list(pairs.items()), text=(0, 1))


def escaped(text: str) -> str:
    """A text on one line, without meaning in Markdown or HTML."""
    flat = " ".join(text.split())
    return _SPECIAL.sub(r"\\\1", html.escape(flat, quote=False))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int]) -> str:
    """A table; the columns whose numbers are in `text` are aligned to the left."""
    rule = [":--" if column in text else "--:" for column in range(len(header))]
    lines = [header, rule, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _missing(document: Document, name: str) -> Iterator[str]:
    if name in document.absent:
        yield f"No data. {document.absent[name]}"


def _summary(document: Document) -> Iterator[str]:
    if document.latency_s is not None:
        yield f"- network, measured as a whole: {milliseconds(document.latency_s)} ms"
    if document.functions_s is not None:
        yield f"- sum of its functions: {milliseconds(document.functions_s)} ms"
    if document.search_s is not None:
        search = f"{document.trials} programs measured in {document.search_s:.0f} s"
        yield f"- search: {search}, until: {escaped(document.reason)}"
    elif document.trials is not None:
        yield f"- programs measured: {document.trials}"
    for check in document.checks:
        yield f"- {escaped(check)}"


def _comparison(comparison: ComparisonData) -> str:
    rows = [
        (
            each.system,
            milliseconds(each.latency_s),
            f"{milliseconds(min(each.rounds_s))} to {milliseconds(max(each.rounds_s))}",
            "-" if each.ratio is None else significant(each.ratio),
            "not finite" if each.difference is None else f"{each.difference:.1e}",
            each.precision,
        )
        for each in comparison.systems
    ]
    header = ("system", "latency ms", "rounds ms", "× tuned", "error", "precision")
    left_out = [
        f"- left out: {escaped(name)}, {escaped(reason)}"
        for name, reason in comparison.missing.items()
    ]
    return "\n".join([table(header, rows, text=(0, 5)), *([""] if left_out else []), *left_out])


def _function(row: FunctionRow) -> tuple[str, ...]:
    return (
        row.name,
        "-" if row.calls is None else str(row.calls),
        microseconds(row.latency_s),
        percent(row.share, 1.0),
        gflops(row.flops or 0, row.latency_s),
        percent(row.peak_share, 1.0),
        "-" if row.speedup is None else significant(row.speedup),
        str(row.trials),
        str(row.failed),
        row.variant or "-",
    )


def _search(document: Document) -> Iterator[str]:
    points = document.network_curve
    if points:
        first, last = points[0], points[-1]
        yield (
            f"The network took {milliseconds(first.best_s)} ms after {first.trials} programs, and "
            f"{milliseconds(last.best_s)} ms after {last.trials}."
        )
    if document.ordered_share is not None:
        share = percent(document.ordered_share, 1.0)
        yield f"Of the pairs of programs of one function, {share} were in the expected order."


def _failures(document: Document) -> str:
    rows = [(each.function, each.kind, str(each.count), each.message) for each in document.failures]
    if not rows:
        return "No program failed."
    return table(("function", "kind", "programs", "first message"), rows, text=(0, 1, 3))


def _program(program: ProgramText) -> str:
    parts = [f"### {escaped(program.function)}", _code(program.loops)]
    if program.assembly:
        summary = f"<summary>Generated code: {html.escape(program.assembly_note)}</summary>"
        parts += [f"<details>{summary}", _code(program.assembly), "</details>"]
    return "\n\n".join(parts)


def _code(text: str) -> str:
    """A block of code with a fence that the text does not contain."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
