"""The instructions that multiply tiles: matrices in separate registers (AMX).

An instruction multiplies up to 16 rows of 16 words by 16 words of 16 lanes. A word is a group of
neighbouring elements along the reduction, as in `dot_instructions`. An instruction on tiles does
the work of 256 instructions on vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

# Intel's manual of instructions, volume 1, chapter 18: there are eight tiles of 16 rows of 64
# bytes.
TILE_ROWS = 16
TILE_WORDS = 16  # of a row, 32 bits each
TILES = 8
ROW_BYTES = 64
TILE_BYTES = TILE_ROWS * ROW_BYTES


@dataclass(frozen=True)
class TileInstruction:
    """One kind of instruction.

    Attributes:
        name: of the instruction in the processor's manual, in lower case, with operands in the
            order of `dot`.
        swapped: its name with the operands' dtypes exchanged.
        dot: the instruction that computes one row of one word, in `DOT_INSTRUCTIONS`.
        feature: LLVM's name of the instruction set.
        unit: the instruction whose rate is measured for it.
    """

    name: str
    swapped: str
    dot: str
    feature: str
    unit: str


# Intel's manual of instructions, volume 2 (AMX-BF16 and AMX-INT8).
TILE_INSTRUCTIONS = (
    TileInstruction("tdpbf16ps", "tdpbf16ps", "vdpbf16ps", "amx-bf16", "tdpbf16ps"),
    TileInstruction("tdpbusd", "tdpbsud", "vpdpbusd", "amx-int8", "tdpbusd"),
    TileInstruction("tdpbssd", "tdpbssd", "vpmaddwd_int8", "amx-int8", "tdpbusd"),
    TileInstruction("tdpbuud", "tdpbuud", "vpmaddwd_uint8", "amx-int8", "tdpbusd"),
)
TILE_FEATURE = "amx-tile"  # loads, stores and the configuration


def tile_instruction(name: str) -> TileInstruction:
    """The instruction of a name.

    Raises:
        KeyError: there is no such instruction.
    """
    return {each.name: each for each in TILE_INSTRUCTIONS}[name]


def tile_form_of(dot: str) -> TileInstruction | None:
    """The counterpart on tiles of an instruction on vectors; None if there is none."""
    return next((each for each in TILE_INSTRUCTIONS if each.dot == dot), None)
