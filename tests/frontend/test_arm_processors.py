"""Our linker's code for Arm's processors: addresses in instructions, decoded again."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.linking.elf import ArmRelocation
from ansor.linking.processors import AARCH64, RangeError

PAGE = 4096
PLACES = st.integers(0, 1 << 20).map(lambda word: 4 * word)
ADRP, ADD, LOAD_64, BRANCH = 0x90000010, 0x91000210, 0xF9400211, 0x94000000


def written(kind: int, instruction: int, place: int, value: int) -> int:
    """An instruction with the value of a relocation."""
    image = bytearray(place + 4)
    struct.pack_into("<I", image, place, instruction)
    AARCH64.writes[kind](image, place, value)
    (word,) = struct.unpack_from("<I", image, place)
    assert not instruction & ~word  # its other bits stay
    return int(word)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def page_of(word: int, place: int) -> int:
    """The address that ADRP computes."""
    pages = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
    return (place // PAGE + pages) * PAGE


@given(PLACES, PLACES)
def test_a_page_and_a_place_in_it(place: int, value: int) -> None:
    page = page_of(written(ArmRelocation.PAGE, ADRP, place, value), place)
    offset = written(ArmRelocation.IN_PAGE_ADD, ADD, place, value) >> 10 & 0xFFF
    assert page + offset == value


@given(PLACES, PLACES)
def test_a_branch(place: int, value: int) -> None:
    word = written(ArmRelocation.CALL, BRANCH, place, value)
    assert place + 4 * signed(word & 0x3FFFFFF, 26) == value


@given(PLACES, PLACES.map(lambda address: address // 8 * 8))
def test_a_jump_through_the_table(place: int, entry: int) -> None:
    page, load, jump, _ = struct.unpack("<4I", AARCH64.jump(place, entry))
    assert page_of(page, place) + 8 * (load >> 10 & 0xFFF) == entry
    assert (load & 0x1F, jump >> 5 & 0x1F) == (17, 17)  # the register that it jumps to


def test_values_that_do_not_fit() -> None:
    with pytest.raises(RangeError, match="no multiple of 8"):
        written(ArmRelocation.IN_PAGE_64, LOAD_64, 0, 12)
    with pytest.raises(RangeError, match="branch"):
        written(ArmRelocation.CALL, BRANCH, 0, 1 << 28)
    with pytest.raises(RangeError, match="pages"):
        written(ArmRelocation.PAGE, ADRP, 0, 1 << 33)
