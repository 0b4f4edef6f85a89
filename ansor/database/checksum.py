"""Checksums of rows, which detect damage even if the values are plausible.

SQLite has no checksums: a latency with a flipped bit is another latency. A checksum detects damage,
but not forgery, because anyone who can write to a file can also write a checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

_BYTES = 8  # damage is overlooked once in 2^64


def checksum(values: Sequence[object]) -> str:
    """16 hex digits that depend on every value.

    Raises:
        ValueError: a value that no column contains.
    """
    try:
        text = json.dumps(values)
    except TypeError as error:
        raise ValueError(f"not a row: {error}") from error
    return hashlib.blake2b(text.encode(), digest_size=_BYTES).hexdigest()


def verify(values: Sequence[object], found: object) -> None:
    """Compares a row with its checksum.

    Args:
        values: of the row.
        found: its checksum; None for a row of a version without checksums.

    Raises:
        ValueError: they do not belong together.
    """
    if found is not None and found != checksum(values):
        raise ValueError("a row does not have the values that were written")
