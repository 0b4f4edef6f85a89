"""The decomposition of operators before conversion.

PyTorch's core ATen decompositions, and further ones for operators outside of the core. Operators
that the compiler supports are kept: convolutions, products, normalisations, softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table

from ansor.frontend.importers.from_torch.converters.recurrent import WHOLE
from ansor.frontend.importers.from_torch.converters.resize import whole_factors

aten = torch.ops.aten
FURTHER = (
    aten.dist.default,
    aten.ldexp.Tensor,
    aten.linalg_vector_norm.default,
    aten._native_batch_norm_legit_functional.default,
    aten._native_batch_norm_legit.no_stats,
    aten._batch_norm_with_update_functional.default,
    aten.narrow_copy.default,
    aten.gcd.default,
    aten.lcm.default,
)
# Kept where an image's sides grow by whole factors: the coordinates then are the same in any way.
RESIZES = (aten.upsample_nearest2d.vec, aten.upsample_bilinear2d.vec)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for `ExportedProgram.run_decompositions`."""
    return dict(_table())


@cache
def _table() -> dict[Any, Callable[..., Any]]:
    table = dict(torch.export.default_decompositions())
    table.update({op: decomposition_table[op] for op in FURTHER if op in decomposition_table})
    table.update({op: _unless_whole(decomposition_table[op]) for op in RESIZES})
    return {op: function for op, function in table.items() if op not in WHOLE}


def _unless_whole(decompose: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition of a resize that leaves whole factors alone."""

    def wrapped(x: Any, output_size: Any, *rest: Any) -> Any:
        scales = rest[-1]
        sizes = output_size or [int(e * s) for e, s in zip(x.shape[-2:], scales, strict=True)]
        exact = not scales or all(float(s).is_integer() for s in scales)
        return (
            NotImplemented
            if exact and whole_factors(x, sizes)
            else decompose(x, output_size, *rest)
        )

    return wrapped
