"""The instructions that add up products of neighbouring elements in each lane of a vector."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DotInstruction:
    """One kind of instruction; it exists for vectors of several widths.

    Attributes:
        name: of the instruction in the processor's manual, in lower case.
        operands: dtypes of the two operands; the order is that of the instruction.
        total: dtype of the sums, one in each lane.
        elements: of either operand in each lane.
    """

    name: str
    operands: tuple[str, str]
    total: str
    elements: int

    def takes(self, dtypes: tuple[str, str, str]) -> bool:
        """Whether it multiplies two operands, in any order, for a sum of these dtypes."""
        first, second, total = dtypes
        return total == self.total and self.operands in ((first, second), (second, first))


# Intel's manual of instructions, volume 2 (AVX512_BF16, AVX512_VNNI and AVX_VNNI).
DOT_INSTRUCTIONS = (
    DotInstruction("vdpbf16ps", ("bfloat16", "bfloat16"), "float32", 2),
    DotInstruction("vpdpbusd", ("uint8", "int8"), "int32", 4),
)
