"""Changes of files: of bytes, of lines of JSON, and of single values of a database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
Bytes = Callable[[bytes, Random], bytes]


def flipped_bits(data: bytes, random: Random) -> bytes:
    """One to eight flipped bits."""
    out = bytearray(data)
    for place in random.integers(0, len(out), random.integers(1, 9)):
        out[place] ^= 1 << int(random.integers(8))
    return bytes(out)


def cut_short(data: bytes, random: Random) -> bytes:
    """The beginning alone."""
    return data[: int(random.integers(0, len(data)))]


def swapped_blocks(data: bytes, random: Random) -> bytes:
    """Two blocks of the same size change places."""
    size = int(random.choice([16, 512, 4096]))
    if len(data) < 2 * size:
        return flipped_bits(data, random)
    first, second = sorted(int(i) * size for i in random.choice(len(data) // size, 2, False))
    one, other = data[first : first + size], data[second : second + size]
    return data[:first] + other + data[first + size : second] + one + data[second + size :]


def overwritten_block(data: bytes, random: Random) -> bytes:
    """A block of zeros, of ones, or of noise."""
    size = int(random.choice([1, 8, 512, 4096]))
    place = int(random.integers(0, len(data)))
    block = [bytes(size), b"\xff" * size, random.bytes(size)][random.integers(3)]
    return data[:place] + block + data[place + size :]


def inserted_block(data: bytes, random: Random) -> bytes:
    """A copy of a part, in another place."""
    place, source = random.integers(0, len(data), 2)
    return data[:place] + data[source : source + random.integers(1, 64)] + data[place:]


BYTES: tuple[Bytes, ...] = (
    flipped_bits,
    flipped_bits,
    cut_short,
    swapped_blocks,
    overwritten_block,
    inserted_block,
)


def changed_bytes(data: bytes, random: Random) -> bytes:
    """One change of bytes."""
    return BYTES[random.integers(len(BYTES))](data, random)


def changed_lines(data: bytes, random: Random) -> bytes:
    """A value of one line of JSON is replaced, by another one or by one of another line."""
    lines = data.splitlines()
    number, other = random.integers(0, len(lines), 2)
    document = json.loads(lines[number])
    places = list(_places(document))
    holder, key = places[random.integers(len(places))]
    if random.integers(3):
        holder[key] = _changed(holder[key], random)
    else:
        others = list(_places(json.loads(lines[other])))
        source, name = others[random.integers(len(others))]
        holder[key] = source[name]
    lines[number] = json.dumps(document).encode()
    return b"\n".join(lines) + b"\n"


def _places(document: Any) -> Any:
    """Every place of a value in a JSON document: its container and its key."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(pairs):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _changed(value: Any, random: Random) -> Any:
    """Another value of the same kind, or of another one."""
    strange: list[Any] = [
        None,
        True,
        -1,
        0,
        1e308,
        10**30,
        "",
        "\ud800",
        [],
        {},
        [[]],
        float("nan"),
        0.5,
    ]
    if isinstance(value, str) and value and random.integers(4):
        place = int(random.integers(len(value)))
        return value[:place] + chr(int(random.integers(32, 127))) + value[place + 1 :]
    if isinstance(value, int | float) and not isinstance(value, bool) and random.integers(4):
        return [value + 1, value * 2, -value, value / 2, value * (1 + 1e-9)][random.integers(5)]
    return strange[random.integers(len(strange))]


def changed_value(path: Path, random: Random) -> None:
    """Replaces one value of a database by SQL, so that the structure of the file stays whole."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        counts = [connection.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in tables]
        table = tables[random.choice(len(tables), p=np.array(counts) / sum(counts))]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = columns[random.integers(len(columns))]
        rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        row, value = rows[random.integers(len(rows))]
        if random.integers(4):
            new = _storable(_changed(value, random))
        else:
            new = rows[random.integers(len(rows))][1]
        with suppress(sqlite3.IntegrityError):  # SQLite refuses what its tables cannot contain
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row))
        connection.execute("PRAGMA journal_mode = DELETE")  # one file


def _storable(value: Any) -> Any:
    """A value as SQLite stores it."""
    if isinstance(value, list | dict):
        return json.dumps(value).encode()
    if isinstance(value, str):
        return value.encode(errors="surrogatepass").decode(errors="replace")
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value
