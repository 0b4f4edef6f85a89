"""The tables of a shared library (ELF, 64 bits), as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ansor.linking.elf import (
    DYNAMIC_ENTRY,
    FILE_HEADER,
    MAGIC,
    PROGRAM_HEADER,
    RELOCATION,
    SECTION_HEADER,
    SYMBOL,
    Architecture,
    Binding,
    DynamicFlag,
    DynamicTag,
    FileType,
    SegmentFlag,
    SegmentType,
    Version,
)

READ = SegmentFlag.READ
READ_RUN = SegmentFlag.READ | SegmentFlag.EXECUTE
READ_WRITE = SegmentFlag.READ | SegmentFlag.WRITE


@dataclass(frozen=True)
class Segment:
    """A part of the file that is loaded, at the address that is its place in the file."""

    begin: int
    end: int
    access: SegmentFlag


@dataclass(frozen=True)
class DynamicSymbol:
    """A symbol that the library exports; without an address, one that it imports."""

    name: str
    address: int = 0
    size: int = 0
    kind: int = 0
    is_weak: bool = False


def headers_size(segments: int) -> int:
    """Bytes of the headers of a library with a number of loaded segments."""
    further = (SegmentType.DYNAMIC, SegmentType.STACK)
    return FILE_HEADER.size + (segments + len(further)) * PROGRAM_HEADER.size


def headers_bytes(
    segments: Sequence[Segment], dynamic: Segment, architecture: Architecture, page_bytes: int
) -> bytes:
    """The begin of the file.

    Args:
        dynamic: the place of the dynamic section.
    """
    programs = [_program(SegmentType.LOAD, segment, page_bytes) for segment in segments]
    programs.append(_program(SegmentType.DYNAMIC, dynamic, 8))
    programs.append(_program(SegmentType.STACK, Segment(0, 0, READ_WRITE), 16))  # never run as code
    identity = MAGIC + bytes([Version.CURRENT])
    kind = (FileType.SHARED, architecture, Version.CURRENT)
    places = (0, FILE_HEADER.size, 0)  # of the first instruction, of `programs`, of sections
    sizes = (FILE_HEADER.size, PROGRAM_HEADER.size, len(programs), SECTION_HEADER.size, 0, 0)
    return FILE_HEADER.pack(identity, *kind, *places, 0, *sizes) + b"".join(programs)


def _program(kind: SegmentType, place: Segment, alignment: int) -> bytes:
    size = place.end - place.begin
    return PROGRAM_HEADER.pack(kind, place.access, *[place.begin] * 3, size, size, alignment)


def names_bytes(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """A table of names, and where each begins."""
    table, places = bytearray(1), []
    for name in names:
        places.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), places


def symbols_bytes(symbols: Sequence[DynamicSymbol], names: Sequence[int]) -> bytes:
    """The table of symbols, after an empty one."""
    rows = [bytes(SYMBOL.size)]
    for symbol, name in zip(symbols, names, strict=True):
        info = (Binding.WEAK if symbol.is_weak else Binding.GLOBAL) << 4 | symbol.kind
        section = 1 if symbol.address else 0  # any that there is, or none
        fields = (name, info, 0, section, symbol.address, symbol.size)
        rows.append(SYMBOL.pack(*fields))
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
    table_places = (
        DynamicTag.HASH,
        DynamicTag.NAMES,
        DynamicTag.SYMBOLS,
        DynamicTag.RELOCATIONS,
    )
    entries = [
        *((DynamicTag.NEEDED, name) for name in needed),
        *zip(table_places, places, strict=True),
        *zip((DynamicTag.NAMES_BYTES, DynamicTag.RELOCATIONS_BYTES), sizes, strict=True),
        (DynamicTag.SYMBOL_BYTES, SYMBOL.size),
        (DynamicTag.RELOCATION_BYTES, RELOCATION.size),
        (DynamicTag.FLAGS, DynamicFlag.BIND_NOW),  # what is missing shows when it is loaded
        (DynamicTag.END, 0),
    ]
    return b"".join(DYNAMIC_ENTRY.pack(tag, value) for tag, value in entries)


def relocations_bytes(relocations: Sequence[tuple[int, int, int, int]]) -> bytes:
    """Relocations by the system's loader: address, kind, symbol, addend."""
    return b"".join(
        RELOCATION.pack(address, symbol << 32 | kind, addend)
        for address, kind, symbol, addend in relocations
    )
