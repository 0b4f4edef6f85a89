"""The part of a database's records that a run sees.

A run does not see records that other processes add at the same time. So an interrupted run can be
repeated exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

_LAST = 2**63 - 1  # SQLite's highest number of a row
CONDITION = "(id <= ? OR (run = ? AND id <= ?))"  # SQL, with the fields of `Known`


@dataclass(frozen=True)
class Known:
    """Numbers of records.

    Attributes:
        before: the last visible one of all runs.
        run: number of the run whose later records are also visible; None for none.
        until: the last visible one of this run.
    """

    before: int = _LAST
    run: int | None = None
    until: int = _LAST


EVERYTHING = Known()
