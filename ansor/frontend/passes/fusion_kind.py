"""Kinds of functions in TVM's fusion of operators."""

from __future__ import annotations

from enum import IntEnum


class FusionKind(IntEnum):
    """The kind of a function in TVM's fusion: its attribute "op_pattern".

    The values are those of `OpPatternKind` in TVM's include/tvm/relax/op_attr_types.h. Fusion joins
    the first two kinds, and nothing with an opaque function.
    """

    ELEMENTWISE = 0  # kElemWise
    BEFORE_ELEMENTWISE = 4  # kOutEWiseFusable: elementwise functions may follow
    OPAQUE = 8  # kOpaque
