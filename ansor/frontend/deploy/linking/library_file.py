"""The tables of a shared library (ELF, 64 bits, x86-64), as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ansor.frontend.deploy.linking.object_file import X86_64

PAGE_BYTES = 4096
READ, READ_RUN, READ_WRITE = 4, 5, 6  # what may be done with a segment
_HEADER_BYTES, _PROGRAM_BYTES, _SECTION_BYTES, _SYMBOL_BYTES = 64, 56, 64, 24
_SHARED = 3
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_GLOBAL, _WEAK = 1, 2
MAX_SEGMENTS = 3
HEADERS_BYTES = _HEADER_BYTES + (MAX_SEGMENTS + 2) * _PROGRAM_BYTES


@dataclass(frozen=True)
class Segment:
    """A part of the file that is loaded, at the address that is its place in the file."""

    begin: int
    end: int
    access: int


@dataclass(frozen=True)
class DynamicSymbol:
    """A name that the library offers, or asks for: then without an address."""

    name: str
    address: int = 0
    size: int = 0
    kind: int = 0
    is_weak: bool = False


def headers_bytes(segments: Sequence[Segment], dynamic: Segment) -> bytes:
    """What the file begins with.

    Args:
        dynamic: the place of the dynamic section.
    """
    programs = [_program(_LOAD, segment, PAGE_BYTES) for segment in segments]
    programs.append(_program(_DYNAMIC, dynamic, 8))
    programs.append(_program(_STACK, Segment(0, 0, READ_WRITE), 16))  # not to be run as code
    magic = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    sizes = (_HEADER_BYTES, _PROGRAM_BYTES, len(programs), _SECTION_BYTES, 0, 0)
    fields = (_SHARED, X86_64, 1, 0, _HEADER_BYTES, 0, 0, *sizes)
    return magic + struct.pack("<HHIQQQIHHHHHH", *fields) + b"".join(programs)


def _program(kind: int, place: Segment, alignment: int) -> bytes:
    size = place.end - place.begin
    fields = (kind, place.access, *[place.begin] * 3, size, size, alignment)
    return struct.pack("<IIQQQQQQ", *fields)


def names_bytes(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """A table of names, and where each begins."""
    table, places = bytearray(1), []
    for name in names:
        places.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), places


def symbols_bytes(symbols: Sequence[DynamicSymbol], names: Sequence[int]) -> bytes:
    """The table of symbols, after an empty one."""
    rows = [bytes(_SYMBOL_BYTES)]
    for symbol, name in zip(symbols, names, strict=True):
        info = (_WEAK if symbol.is_weak else _GLOBAL) << 4 | symbol.kind
        section = 1 if symbol.address else 0  # any that there is, or none
        fields = (name, info, 0, section, symbol.address, symbol.size)
        rows.append(struct.pack("<IBBHQQ", *fields))
    return b"".join(rows)


def hash_bytes(symbols: Sequence[DynamicSymbol]) -> bytes:
    """The hash table by which the system finds symbols: buckets of chained symbols."""
    count = len(symbols) + 1
    buckets, chain = [0] * count, [0] * count
    for number, symbol in enumerate(symbols, start=1):
        bucket = _hash(symbol.name) % count
        chain[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chain)


def _hash(name: str) -> int:
    """ELF's hash of a name."""
    value = 0
    for letter in name.encode():
        value = (value << 4) + letter
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def dynamic_bytes(needed: Sequence[int], places: Sequence[int], sizes: Sequence[int]) -> bytes:
    """The dynamic section.

    Args:
        needed: names of other libraries, as places in the table of names.
        places: addresses of the hash table, the names, the symbols and the relocations.
        sizes: bytes of the names and the relocations.
    """
    tags = (*[1] * len(needed), 4, 5, 6, 7, 10, 8, 11, 9, 30, 0)
    now = 8  # every symbol is looked up at once: what is missing shows when it is loaded
    values = (*needed, *places, *sizes, _SYMBOL_BYTES, struct.calcsize("<QQq"), now, 0)
    pairs = zip(tags, values, strict=True)
    return b"".join(struct.pack("<qQ", tag, value) for tag, value in pairs)


def relocations_bytes(relocations: Sequence[tuple[int, int, int, int]]) -> bytes:
    """Relocations by the system's loader: address, kind, symbol, addend."""
    return b"".join(
        struct.pack("<QQq", address, symbol << 32 | kind, addend)
        for address, kind, symbol, addend in relocations
    )
