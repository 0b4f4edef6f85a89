"""The parameters of a PrimFunc."""

from __future__ import annotations

from tvm import tirx

Signature = tuple[tuple[tuple[int, ...], str], ...]


def signature(func: tirx.PrimFunc) -> Signature:
    """Shape and dtype of every buffer parameter."""
    return tuple(
        (tuple(int(extent) for extent in buffer.shape), str(buffer.dtype)) for buffer in func.params
    )
