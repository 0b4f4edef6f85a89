"""Writes the page of measured figures from the result files.

``python -m benchmarks.measured`` writes ``docs/measured.md``; with ``--check`` it writes nothing
and fails if the page differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ansor.errors import AnsorError
from benchmarks.measured_results import read_runs
from benchmarks.measured_sections import SECTIONS, Section

_DOCS = Path(__file__).parent.parent / "docs"
PAGE = _DOCS / "measured.md"
RESULTS = _DOCS / "results"

_HEAD = """\
# Measured figures

`python -m benchmarks.measured` writes this page from the JSON files in `docs/results`.
Each file holds the output of one benchmark, or a list `runs` of such outputs.
An output names the processor, the threads, the package versions, the commit and the time.
A `+` after a commit marks changes that were not committed.
All figures are for batch 1 unless the row names a batch.
They are for fp32 unless the section names another precision.

The machines are virtual and shared, so latencies of different runs are not comparable.
Ratios are always of one run."""

_METHOD = """\
## Method

Each system runs in its own process, with the same number of threads, the same weights and the same
inputs. The processes stay alive, and the systems take turns. A turn lasts half a second for a
network and an eighth of a second for an operator. A turn is a short warm-up and then single calls;
the median of the calls counts. Ten turns make a round, and the order of the systems alternates.
After a round, all processes start again, because the placement of memory differs between processes.

A latency is the median over all turns. A ratio is the median of the ratios within a turn, because a
shared machine changes its speed within seconds. A system with a run longer than a turn has one turn
per round."""


def page(sections: Sequence[Section] = SECTIONS, results: Path = RESULTS) -> str:
    """The whole page. A section appears when one of its files is there.

    Raises:
        MissingKeyError: a result file lacks a key.
    """
    there = [part for part in sections if part.files_in(results)]
    return "\n\n".join([_HEAD, *(section_text(part, results) for part in there), _METHOD]) + "\n"


def section_text(section: Section, results: Path) -> str:
    """Heading, text, tables and command of one benchmark.

    Raises:
        MissingKeyError: a result file lacks a key.
    """
    files = section.files_in(results)
    runs = [run for file in files for run in read_runs(results / file)]
    links = ", ".join(f"[{file}](results/{file})" for file in files)
    return "\n\n".join(
        (
            f"## {section.heading}",
            section.text,
            section.columns,
            section.tables(runs),
            f"Results: {links}. The command repeats the benchmark:",
            f"```sh\n{section.command}\n```",
        )
    )


@click.command()
@click.option("--check", is_flag=True, help="Fail if the page differs, and write nothing.")
def main(check: bool) -> None:
    """Writes docs/measured.md from the files in docs/results."""
    try:
        text = page()
    except AnsorError as error:
        raise click.ClickException(str(error)) from error
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        raise click.ClickException(
            f"docs/{PAGE.name} is outdated: run python -m benchmarks.measured"
        )


if __name__ == "__main__":
    main()
