"""The instructions that add up products of neighbouring elements in each lane of a vector."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DotInstruction:
    """One kind of instruction; it exists for vectors of several widths.

    Attributes:
        name: of the instruction in the processor's manual, in lower case. Where the same serves
            several dtypes, they follow behind an underscore.
        operands: dtypes of the two operands; the order is that of the instruction.
        total: dtype of the sums, one in each lane.
        elements: of either operand in each lane.
        narrow: whether it is exact only for a narrow second operand
            (`ansor.dag.from_tir.narrow`).
    """

    name: str
    operands: tuple[str, str]
    total: str
    elements: int
    narrow: bool = False

    @property
    def mnemonic(self) -> str:
        """The name alone."""
        return self.name.partition("_")[0]

    def takes(self, dtypes: tuple[str, str, str]) -> bool:
        """Whether it multiplies two operands, in any order, for a sum of these dtypes."""
        first, second, total = dtypes
        return total == self.total and self.operands in ((first, second), (second, first))


# The fastest instruction for the same operands comes first. Intel's manual of instructions, volume
# 2: AVX512_BF16, AVX512_VNNI, AVX_VNNI and AVX2. Arm's manual (DDI 0487): FEAT_DotProd, FEAT_I8MM
# and FEAT_BF16. Two names stand for several of Intel's instructions. With "vpmaddubsw", this one
# saturates sums of two products to 16 bits, and `vpmaddwd` adds two pairs of the sums. With
# "vpmaddwd", this one multiplies elements of 16 bits, first the even ones, then the odd ones.
DOT_INSTRUCTIONS = (
    DotInstruction("vdpbf16ps", ("bfloat16", "bfloat16"), "float32", 2),
    DotInstruction("vpdpbusd", ("uint8", "int8"), "int32", 4),
    DotInstruction("vpmaddubsw", ("uint8", "int8"), "int32", 4, narrow=True),
    DotInstruction("vpmaddwd", ("uint8", "int8"), "int32", 4),
    DotInstruction("vpmaddwd_int8", ("int8", "int8"), "int32", 4),
    DotInstruction("vpmaddwd_uint8", ("uint8", "uint8"), "int32", 4),
    DotInstruction("bfdot", ("bfloat16", "bfloat16"), "float32", 2),
    DotInstruction("sdot", ("int8", "int8"), "int32", 4),
    DotInstruction("udot", ("uint8", "uint8"), "int32", 4),
    DotInstruction("usdot", ("uint8", "int8"), "int32", 4),
)


def instruction_named(name: str) -> DotInstruction:
    """The instruction of that name."""
    return next(each for each in DOT_INSTRUCTIONS if each.name == name)
