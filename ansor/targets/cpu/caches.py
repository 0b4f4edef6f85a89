"""Sizes of the data caches, as Linux reports them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Caches:
    """Bytes of L1 data, L2 and last level, and of a cache line."""

    sizes: tuple[int, int, int]
    line: int


def read_caches(directory: Path = SYSTEM) -> Caches | None:
    """The data caches of one core; None if the system does not report them.

    Without a third level, the second counts as the last.
    """
    found: dict[int, int] = {}
    lines: list[int] = []
    for index in sorted(directory.glob("index*")):
        try:
            level, size, line = _read_index(index)
        except (OSError, ValueError, KeyError):
            continue
        if size:
            found[level] = size
            lines.append(line)
    if 1 not in found or 2 not in found:
        return None
    return Caches((found[1], found[2], found[max(found)]), lines[0])


def _read_index(index: Path) -> tuple[int, int, int]:
    """Level, bytes (0 for instructions) and line bytes of one cache."""
    kind = _text(index / "type")
    size = 0 if kind == "Instruction" else _bytes(_text(index / "size"))
    return int(_text(index / "level")), size, int(_text(index / "coherency_line_size"))


def _text(path: Path) -> str:
    return path.read_text().strip()


def _bytes(text: str) -> int:
    """Bytes of a size such as "48K"."""
    return int(text) if text.isdigit() else int(text[:-1]) * _UNITS[text[-1]]
