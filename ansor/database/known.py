"""The part of a database's records that a run knows.

A run does not see what other processes add meanwhile, so a run that was interrupted can be repeated
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

_LAST = 2**63 - 1  # SQLite's highest number of a row
CONDITION = "(id <= ? OR (run = ? AND id <= ?))"  # SQL, with the fields of `Known`


@dataclass(frozen=True)
class Known:
    """Numbers of records.

    Attributes:
        before: the last one that may be of any run.
        run: number of the run whose later records are known too; None for none.
        until: the last one of these.
    """

    before: int = _LAST
    run: int | None = None
    until: int = _LAST


EVERYTHING = Known()
