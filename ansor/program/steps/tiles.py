"""The step of instructions that multiply tiles of registers."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.program.steps.gpu import TensorTile


@dataclass(frozen=True)
class DotTile(TensorTile):
    """Tile a sum of groups of products for an instruction on tiles, such as `tdpbf16ps`.

    The innermost tile has up to 16 rows, groups and lanes along `matrix`, given by the last columns
    of the decisions. Groups may run along several axes, between the first and the last. The results
    of the spatial level around the tile stay in registers during the innermost reduction level.
    """

    instruction: str
