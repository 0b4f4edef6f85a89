"""The part of a function's assembly that takes its time: where vector instructions are densest."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_LINES = 240  # of an excerpt: the inner loops of nearly every kernel
# Vector registers of x86-64, of AArch64 (NEON and SVE), and AMX tiles.
_VECTOR = re.compile(r"%[xyzt]mm\d|\b[vz]\d+\.\d*[bhsd]\b")
# Multiply-adds and sums of products: a store of zeros before a loop weighs less.
_PRODUCT = re.compile(r"\s+(?:vfn?m(?:add|sub)|vp?dp|vpmadd|tdp|fml|[su]+dot|bfdot)")
_PRODUCT_WEIGHT = 8
_FUNCTION = re.compile(r"\s*\.type\s+(\S+),\s*[@%]function")
_LABEL = re.compile(r"\S+:")
_POSITION = re.compile(r"\.L(?:tmp|func_\w+?|debug_\w+?|info_\w+?)\d*:")  # labels for debuggers


@dataclass(frozen=True)
class Excerpt:
    """Lines of assembly, and which part of it they are."""

    text: str
    note: str


def excerpt(assembly: str, most: int = MOST_LINES) -> Excerpt:
    """The lines with the most vector instructions, without directives.

    Args:
        assembly: what LLVM prints of a module.
        most: lines of the excerpt.
    """
    bodies = _bodies(assembly)
    if not bodies:  # without ELF's marks of functions
        lines = assembly.splitlines()
        return Excerpt("\n".join(lines[:most]), _note("all functions", 0, most, len(lines)))
    name = max(bodies, key=lambda name: (_vectors(bodies[name]), len(bodies[name])))
    lines = bodies[name]
    begin = _densest(lines, most)
    return Excerpt(
        "\n".join(lines[begin : begin + most]), _note(f"function {name}", begin, most, len(lines))
    )


def _note(what: str, begin: int, most: int, total: int) -> str:
    if total <= most:
        return f"{what}, {total} lines"
    return f"{what}, lines {begin + 1} to {min(begin + most, total)} of {total}"


def _bodies(assembly: str) -> dict[str, list[str]]:
    """The instructions and labels of each function."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in assembly.splitlines():
        found = _FUNCTION.match(line)
        if found:
            lines = bodies.setdefault(found[1], [])
        elif _is_code(line):
            lines.append(line.expandtabs(8).rstrip())
    return bodies


def _is_code(line: str) -> bool:
    """Whether a line is an instruction or the target of a jump."""
    text = line.strip()
    if not line[:1].isspace():
        return bool(_LABEL.match(text)) and not _POSITION.match(text)
    return bool(text) and not text.startswith((".", "#", "//", "@"))


def _vectors(lines: list[str]) -> int:
    return sum(map(_weight, lines))


def _weight(line: str) -> int:
    if not _VECTOR.search(line):
        return 0
    return _PRODUCT_WEIGHT if _PRODUCT.match(line) else 1


def _densest(lines: list[str], most: int) -> int:
    """Begin of the `most` lines with the most vector instructions."""
    if len(lines) <= most:
        return 0
    counts = [0]
    for line in lines:
        counts.append(counts[-1] + _weight(line))
    starts = range(len(lines) - most + 1)
    return max(starts, key=lambda start: (counts[start + most] - counts[start], -start))
