"""The process that reads mutated files: ``python -m benchmarks.fault_scenarios.mutated_child``.

It prints a line of JSON for each case. A case without a line has ended the process.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import click
import numpy as np

from ansor.errors import AnsorError
from benchmarks.fault_scenarios.mutated_subjects import LieError, Subject, subjects

REFUSED, ACCEPTED, LIE, ERROR = "refused", "accepted", "lie", "error"


def outcome(subject: Subject, folder: Path, random: np.random.Generator) -> tuple[str, str]:
    """The answer of a reader to one mutated file, and the reason why it is wrong."""
    path = subject.mutate(folder, random)
    try:
        subject.read(path)
    except AnsorError:
        return REFUSED, ""
    except LieError as error:
        return LIE, str(error)
    except Exception as error:
        return ERROR, f"{type(error).__name__}: {error}"
    return ACCEPTED, ""


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.argument("name")
@click.argument("first", type=int)
@click.argument("end", type=int)
def main(folder: Path, name: str, first: int, end: int) -> None:
    """Reads the cases FIRST to END of the subject NAME, made of the originals in FOLDER."""
    found = subjects(folder)
    place = list(found).index(name)
    for case in range(first, end):
        work = Path(tempfile.mkdtemp(prefix="mutated-"))
        try:
            kind, detail = outcome(found[name], work, np.random.default_rng([place, case]))
        finally:
            shutil.rmtree(work)
        line = {"case": case, "outcome": kind, "detail": detail[:500]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
