"""Fits the constants of the CPU draft on measured programs, and measures the effect of each.

``python -m benchmarks.fit_draft --json FILE``

The programs come from the files in ``benchmarks/measured_drafts``. By default the definitions are
in three parts. The constants are fitted on two of them. The third part measures the effect of
leaving out a constant. With ``--keep-values``, there is no fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from ansor.report.formatting import align
from ansor.targets.cpu.draft.constants import DEFAULTS, DraftConstants
from benchmarks.draft_data import FOLDER, SUFFIX, read
from benchmarks.draft_fitting import (
    FACTORS,
    FEW_FACTORS,
    Case,
    Effect,
    Evaluator,
    Summary,
    cases_of,
    changed,
    effect,
    fit,
    folds,
    neutral_values,
    summary,
    values_of,
)
from benchmarks.environment import commit, versions, write

_QUICK_PROGRAMS = 60  # of a definition
_PASSES = 2

_Part = tuple[Sequence[int], Sequence[int]]  # cases of the fit, and cases outside it


@dataclass(frozen=True)
class _Settings:
    """The constants to fit, and the effort."""

    names: Sequence[str]
    quick: bool
    keep_values: bool


@click.command()
@click.option("--hold-out", metavar="KIND", help="Fit on the other kinds of processors.")
@click.option("--folds", "count", type=click.IntRange(2), default=3, show_default=True)
@click.option("--constants", help="Separated by commas; all that can be fitted by default.")
@click.option("--without", help="Constants that stay at their neutral values, with commas.")
@click.option("--quick", is_flag=True, help="Fewer programs and values.")
@click.option("--keep-values", is_flag=True, help="Measure effects only.")
@click.option("--data", type=click.Path(path_type=Path), default=FOLDER, metavar="FOLDER")
@click.option("--json", "file", metavar="FILE", help="Where results are written.")
def main(
    hold_out: str | None,
    count: int,
    constants: str | None,
    without: str | None,
    quick: bool,
    keep_values: bool,
    data: Path,
    file: str | None,
) -> None:
    """Fits, and prints a table of the constants."""
    began = time.monotonic()
    absent = _names(without) if without else []
    names = _names(constants) if constants else list(neutral_values(DEFAULTS))
    settings = _Settings([n for n in names if n not in absent], quick, keep_values)
    start = changed(DEFAULTS, {name: neutral_values(DEFAULTS)[name] for name in absent})
    evaluator = Evaluator(_cases(data, _QUICK_PROGRAMS if quick else None))
    parts = _parts(evaluator.cases, hold_out, count)
    fitted = [(_fitted(evaluator, inside, start, settings), out) for inside, out in parts]
    kept = [(start, out) for _, out in parts]
    every = range(len(evaluator.cases))
    final = fitted[0][0] if hold_out else _fitted(evaluator, every, start, settings)
    effects = {name: effect(evaluator, fitted, name) for name in settings.names}
    before, after = _summary(evaluator, kept), _summary(evaluator, fitted)
    print(_table(start, final, effects))
    print(_totals(before, after))
    print(f"{time.monotonic() - began:.0f} s")
    document = {
        "versions": versions(),
        "commit": commit(),
        "cases": [{"kind": case.kind, "definition": case.name} for case in evaluator.cases],
        "before": asdict(before),
        "fitted": asdict(after),
        "values_before": values_of(start),
        "values_fitted": values_of(final),
        "left_out": {name: asdict(found) for name, found in effects.items()},
    }
    write(file, document)


def _names(text: str) -> list[str]:
    """Names of constants, which have to exist."""
    names = text.split(",")
    for name in names:
        if name not in neutral_values(DEFAULTS):
            raise click.UsageError(f"{name!r} is not a constant that the fit may change")
    return names


def _cases(folder: Path, most: int | None) -> list[Case]:
    """The cases of all files of a folder."""
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if not files:
        raise click.UsageError(f"{folder} has no files of measurements")
    return [case for file in files for case in cases_of(read(file), most)]


def _parts(cases: Sequence[Case], hold_out: str | None, count: int) -> list[_Part]:
    """The cases of each fit, and the cases outside it."""
    if hold_out is None:
        every = range(len(cases))
        return [([i for i in every if i not in out], out) for out in folds(cases, count)]
    inside = [i for i, case in enumerate(cases) if case.kind != hold_out]
    out = [i for i, case in enumerate(cases) if case.kind == hold_out]
    if not inside or not out:
        kinds = ", ".join(sorted({case.kind for case in cases}))
        raise click.UsageError(f"--hold-out {hold_out} needs it and another kind; found: {kinds}")
    return [(inside, out)]


def _fitted(
    evaluator: Evaluator, numbers: Sequence[int], start: DraftConstants, settings: _Settings
) -> DraftConstants:
    """The constants after a fit on some cases."""
    if settings.keep_values:
        return start
    factors, passes = (FEW_FACTORS, 1) if settings.quick else (FACTORS, _PASSES)
    return fit(evaluator, numbers, start, settings.names, factors, passes, _note)


def _note(text: str) -> None:
    """Progress of a fit."""
    print(text, flush=True)


def _summary(
    evaluator: Evaluator, parts: Sequence[tuple[DraftConstants, Sequence[int]]]
) -> Summary:
    """Scores on the cases outside each fit."""
    return summary([one for found, out in parts for one in evaluator.scores(found, out)])


def _table(before: DraftConstants, after: DraftConstants, effects: dict[str, Effect]) -> str:
    """The constants: values, and what leaving out each of them changes."""
    old, new = values_of(before), values_of(after)
    header = ("constant", "value", "fitted", "neutral", "cases", "median rho", "mean rho")
    rows = [
        (
            *(name, f"{old[name]:.4g}", f"{new[name]:.4g}"),
            *(f"{neutral_values(before)[name]:.4g}", str(found.exercised)),
            *(f"{found.median_spearman:+.4f}", f"{found.mean_spearman:+.4f}"),
            *(f"{100 * (found.best_of_5 - 1):+.2f} %", f"{found.loss:+.4f}"),
            f"{found.worst_spearman:+.3f} {found.worst}",
        )
        for name, found in effects.items()
    ]
    return align((*header, "best of 5", "loss", "worst rho"), rows, left=(0, 9))


def _totals(before: Summary, after: Summary) -> str:
    """Scores on definitions outside the fits, with the present and with the fitted constants."""
    rows = [
        (
            label,
            *(f"{found.median_spearman:.4f}", f"{found.mean_spearman:.4f}"),
            *(f"{found.best_of_5:.4f}", f"{found.loss:.4f}"),
        )
        for label, found in (("present", before), ("fitted", after))
    ]
    return align(("outside the fit", "median rho", "mean rho", "best of 5", "loss"), rows)


if __name__ == "__main__":
    main()
