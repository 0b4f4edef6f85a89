"""Checksums of rows, so that a damaged row is noticed even where it makes sense.

SQLite has no checksums: a flipped bit of a latency is another latency. A checksum finds damage, and
no forgery: whoever can write to a file can write a checksum too.
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
