"""Sizes that a user gives to a model's dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansor.errors import ArgumentError


@dataclass(frozen=True)
class Sizes:
    """Sizes of inputs.

    Attributes:
        shapes: whole shapes, by the name of the input.
        dims: sizes of dynamic dimensions, by their symbol, for all inputs.
        default: of dynamic dimensions that nothing else gives a size; an exported program has its
            example's then. None asks.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    default: int | None = None

    def __bool__(self) -> bool:
        return bool(self.shapes or self.dims)

    def check_names(self, inputs: Sequence[str], symbols: Sequence[str]) -> None:
        """Raises ArgumentError for a name that is neither an input nor a dynamic dimension."""
        for argument, given, known in (
            ("shapes", self.shapes, inputs),
            ("dims", self.dims, symbols),
        ):
            unknown = [name for name in given if name not in known]
            if unknown:
                listed = ", ".join(known) or "there are none"
                raise ArgumentError(argument, ", ".join(unknown), f"no such name: {listed}")
