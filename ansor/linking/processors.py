"""Relocations of addresses in the code of each kind of processor.

Sources: "System V Application Binary Interface, AMD64 Architecture Processor Supplement", chapter
"Object Files"; "ELF for the Arm 64-bit Architecture", chapter "Relocation". P is the place of a
relocation, and V the value: the address of the symbol, or of its entry in the table, with the
addend.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ansor.linking.elf import Architecture, ArmRelocation, RelocationType

Write = Callable[[bytearray, int, int], None]  # of the value of a relocation: image, P, V
_PAGE = 4096  # that ADRP counts in, whatever the pages of the system


class RangeError(Exception):
    """A value that does not fit in its field."""


@dataclass(frozen=True)
class Processor:
    """The relocations of one kind of processor.

    Attributes:
        architecture: as object files name it.
        page_bytes: largest page of a system.
        writes: by the kind of a relocation, what writes its value.
        calls: kinds for which a jump to the function of another library may stand.
        in_table: kinds whose value is an entry of the table of addresses.
        address: kind of a symbol's whole address.
        table_entry: kind by which the loader fills in an entry of the table.
        base: kind by which the loader adds the address of the library.
        jump: a jump at P through the entry of the table at V.
        jump_bytes: of a jump.
    """

    architecture: Architecture
    page_bytes: int
    writes: dict[int, Write]
    calls: frozenset[int]
    in_table: frozenset[int]
    address: int
    table_entry: int
    base: int
    jump: Callable[[int, int], bytes]
    jump_bytes: int


def _relative(form: str) -> Write:
    """Writes the distance from P."""

    def write(image: bytearray, place: int, value: int) -> None:
        try:
            struct.pack_into(form, image, place, value - place)
        except struct.error as error:
            raise RangeError(f"a distance of {value - place} bytes") from error

    return write


def _jump_x86(place: int, entry: int) -> bytes:
    """`jmp [rip + distance]`, counted from the next instruction."""
    return struct.pack("<2sixx", b"\xff\x25", entry - (place + 6))


def _with_bits(image: bytearray, place: int, value: int, first: int) -> None:
    """Sets bits of an instruction, which are zero."""
    (word,) = struct.unpack_from("<I", image, place)
    struct.pack_into("<I", image, place, word | value << first)


def _page_distance(image: bytearray, place: int, value: int) -> None:
    """ADRP: the distance between pages."""
    _set_pages(image, place, value // _PAGE - place // _PAGE)


def _set_pages(image: bytearray, place: int, pages: int) -> None:
    """21 bits of an instruction, the lowest two apart."""
    if not -(1 << 20) <= pages < 1 << 20:
        raise RangeError(f"a distance of {pages} pages")
    _with_bits(image, place, pages & 3, 29)
    _with_bits(image, place, pages >> 2 & 0x7FFFF, 5)


def _in_page(unit_bytes: int) -> Write:
    """The 12 bits of the address within a page, in units."""

    def write(image: bytearray, place: int, value: int) -> None:
        if value % unit_bytes:
            raise RangeError(f"an address that is no multiple of {unit_bytes}")
        _with_bits(image, place, value % _PAGE // unit_bytes, 10)

    return write


def _branch(image: bytearray, place: int, value: int) -> None:
    """BL and B: 26 bits of the distance in instructions."""
    distance = (value - place) // 4
    if not -(1 << 25) <= distance < 1 << 25:
        raise RangeError(f"a branch over {distance} instructions")
    _with_bits(image, place, distance & 0x3FFFFFF, 0)


def _jump_arm(place: int, entry: int) -> bytes:
    """`adrp x16, page; ldr x17, [x16, offset]; br x17; nop`: in the registers that the standard of
    procedure calls leaves to linkers."""
    code = bytearray(struct.pack("<4I", 0x90000010, 0xF9400211, 0xD61F0220, 0xD503201F))
    _set_pages(code, 0, entry // _PAGE - place // _PAGE)
    _in_page(8)(code, 4, entry)
    return bytes(code)


X86_64 = Processor(
    architecture=Architecture.X86_64,
    page_bytes=4096,
    writes={
        RelocationType.RELATIVE: _relative("<i"),
        RelocationType.CALL: _relative("<i"),
        RelocationType.IN_TABLE: _relative("<i"),
        RelocationType.IN_TABLE_RELAXABLE: _relative("<i"),
        RelocationType.IN_TABLE_RELAXABLE_REX: _relative("<i"),
        RelocationType.RELATIVE_64: _relative("<q"),
    },
    calls=frozenset((RelocationType.RELATIVE, RelocationType.CALL)),
    in_table=frozenset(
        (
            RelocationType.IN_TABLE,
            RelocationType.IN_TABLE_RELAXABLE,
            RelocationType.IN_TABLE_RELAXABLE_REX,
        )
    ),
    address=RelocationType.ADDRESS,
    table_entry=RelocationType.TABLE_ENTRY,
    base=RelocationType.BASE,
    jump=_jump_x86,
    jump_bytes=8,
)
AARCH64 = Processor(
    architecture=Architecture.AARCH64,
    page_bytes=1 << 16,
    writes={
        ArmRelocation.RELATIVE: _relative("<i"),
        ArmRelocation.RELATIVE_64: _relative("<q"),
        ArmRelocation.PAGE: _page_distance,
        ArmRelocation.IN_PAGE_ADD: _in_page(1),
        ArmRelocation.IN_PAGE_8: _in_page(1),
        ArmRelocation.IN_PAGE_16: _in_page(2),
        ArmRelocation.IN_PAGE_32: _in_page(4),
        ArmRelocation.IN_PAGE_64: _in_page(8),
        ArmRelocation.IN_PAGE_128: _in_page(16),
        ArmRelocation.JUMP: _branch,
        ArmRelocation.CALL: _branch,
        ArmRelocation.TABLE_PAGE: _page_distance,
        ArmRelocation.IN_TABLE_PAGE: _in_page(8),
    },
    calls=frozenset((ArmRelocation.JUMP, ArmRelocation.CALL)),
    in_table=frozenset((ArmRelocation.TABLE_PAGE, ArmRelocation.IN_TABLE_PAGE)),
    address=ArmRelocation.ADDRESS,
    table_entry=ArmRelocation.TABLE_ENTRY,
    base=ArmRelocation.BASE,
    jump=_jump_arm,
    jump_bytes=16,
)
PROCESSORS = {each.architecture: each for each in (X86_64, AARCH64)}
