"""Mutated and truncated databases, logs and saved networks: no crash, and no accepted lie.

Each case changes a copy of a file that a run wrote. Its reader must refuse the file with an
`AnsorError` and leave it as it is, or return correct data: each record, task, check and election
equals one of the original. A damaged one may be missing. A saved network must be refused unless no
byte differs. A trace of MetaSchedule must replay, because every program is compared with its
definition later.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.fault_scenarios.mutated_child import ACCEPTED, ERROR, LIE, REFUSED
from benchmarks.fault_scenarios.mutated_subjects import Originals, subjects
from benchmarks.fault_scenarios.row import Case, Row, Scale

CASES = {Scale.QUICK: 25, Scale.FULL: 1500}  # of each of seven subjects
_MOST_S = 3600.0  # of all cases of a subject
CRASH = "crash"
_KINDS = (REFUSED, ACCEPTED, LIE, ERROR, CRASH)


def run(scale: Scale) -> list[Row]:
    """See `benchmarks.fault_scenarios`."""
    with tempfile.TemporaryDirectory() as folder:
        Originals(Path(folder)).write()
        return [_row(Path(folder), name, CASES[scale]) for name in subjects(Path(folder))]


def _row(folder: Path, name: str, count: int) -> Row:
    case = Case(name, f"{count:,} changed or truncated files")
    found = outcomes(folder, name, count)
    counts = Counter(kind for kind, _ in found)
    bad = [detail for kind, detail in found if kind not in (REFUSED, ACCEPTED)]
    observed = ", ".join(
        f"{counts[kind]:,} {kind}" for kind in (REFUSED, ACCEPTED, LIE, ERROR, CRASH)
    )
    if bad:
        observed += f"; {bad[0]}"
    return case.row("0 lies, errors and crashes", observed, not bad and len(found) == count)


def outcomes(folder: Path, name: str, count: int) -> list[tuple[str, str]]:
    """The outcome of each case of a subject, and what is wrong with it."""
    found: list[tuple[str, str]] = []
    while len(found) < count:
        lines, end = _batch(folder, name, len(found), count)
        found += [(line["outcome"], f"case {line['case']}: {line['detail']}") for line in lines]
        if len(found) < count:
            found.append((CRASH, f"case {len(found)}: the process ends with {end}"))
    return found


def _batch(folder: Path, name: str, first: int, count: int) -> tuple[list[dict[str, str]], str]:
    """The lines of a process that reads cases until it ends, and how it ended."""
    command = [sys.executable, "-m", "benchmarks.fault_scenarios.mutated_child"]
    with tempfile.TemporaryFile("w+") as output:
        try:
            done = subprocess.run(
                [*command, str(folder), name, str(first), str(count)],
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                timeout=_MOST_S,
            )
            end = f"{done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            end = "no answer"
        output.seek(0)
        return [json.loads(line) for line in output if line.endswith("\n")], end
