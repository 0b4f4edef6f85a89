"""Scores of attention: a transposed batched matrix product, with or without softmax."""

from __future__ import annotations

import numpy as np
from tvm import te, topi

from ansor.workloads.workload import Array, Workload


def attention_scores(
    name: str, batch: int, length: int, heads: int, width: int, softmax: bool = False
) -> Workload:
    """Query and key `[batch, length, heads, width]` to `[batch, heads, length, length]`."""
    shape = (batch, length, heads, width)
    query, key = te.placeholder(shape, name="query"), te.placeholder(shape, name="key")
    rows = te.compute(
        (batch, heads, length, width), lambda b, h, i, d: query[b, i, h, d], name="rows"
    )
    columns = te.compute(
        (batch, heads, width, length), lambda b, h, d, j: key[b, j, h, d], name="columns"
    )
    k = te.reduce_axis((0, width), "k")
    scores = te.compute(
        (batch, heads, length, length),
        lambda b, h, i, j: te.sum(rows[b, h, i, k] * columns[b, h, k, j], axis=k),
        name="scores",
    )
    out = topi.nn.softmax(scores, axis=3) if softmax else scores

    def reference(query: Array, key: Array) -> Array:
        found: Array = query.transpose(0, 2, 1, 3) @ key.transpose(0, 2, 3, 1)
        if not softmax:
            return found
        powers = np.exp(found - found.max(axis=-1, keepdims=True))
        shares: Array = powers / powers.sum(axis=-1, keepdims=True)
        return shares

    return Workload(name, (query, key, out), reference)
