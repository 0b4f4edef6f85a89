"""Schedules that a person would write for a CPU: templates with knobs, and functions that sample.

Products and convolutions keep a tile of the result in registers: rows by whole vectors. The other
operand is packed in panels as wide as the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx

import ansor

LANES = 16  # of a vector in float32 with 512 bits
ROWS = 8  # most rows of a product's tile: with four vectors as many as there are registers
POINTS = 16  # the same of a convolution's, whose rows are points of the image
UNROLLED = [1, 2, 4]  # steps of the reduction in the loop body


@ansor.template("panel_matmul")
def panel_matmul(cfg: Any, sch: Any) -> None:
    """A batch of products with a packed second operand: `GMM` and `OPE.0` to `OPE.2`."""
    block = sch.get_sblock("C")
    *_, y, x, k = sch.get_loops(block)
    rows = cfg.split("tile_y", y, 3, filter=lambda tile: tile.size[-1] <= ROWS)
    columns = cfg.split("tile_x", x, 3, filter=lambda tile: tile.size[-1] <= 4 * LANES)
    steps = cfg.split("tile_k", k, 2, candidates=[[-1, unroll] for unroll in UNROLLED])
    width = columns.size[-1] if cfg.knob("pack", [True, False]) else 0
    _product(sch, block, [rows.size], columns.size, steps.size, width)


@ansor.template("register_conv2d")
def register_conv2d(cfg: Any, sch: Any) -> None:
    """A convolution, channels last, without epilogue: `C2D`."""
    block = sch.get_sblock("conv")
    _, y, x, f, *_, c = sch.get_loops(block)
    rows = cfg.split("tile_y", y, 3, filter=lambda tile: tile.size[-1] == 1)
    columns = cfg.split("tile_x", x, 3, filter=lambda tile: tile.size[-1] <= POINTS)
    filters = cfg.split("tile_f", f, 3, filter=lambda tile: tile.size[-1] <= 2 * LANES)
    steps = cfg.split("tile_c", c, 2, max_factor=UNROLLED[-1])
    _pad_first(sch)
    width = filters.size[-1] if cfg.knob("pack", [True, False]) else 0
    _product(sch, block, [rows.size, columns.size], filters.size, steps.size, width)


def sampled_matmul(sch: ansor.Schedule) -> None:
    """The space of `panel_matmul`, by samples."""
    block = sch.get_sblock("C")
    *_, y, x, _ = sch.get_loops(block)
    rows = _sampled(sch, y, 3, ROWS)
    columns = _sampled(sch, x, 3, 4 * LANES)
    unroll = int(sch.get(sch.sample_categorical(UNROLLED)))
    pack = int(sch.get(sch.sample_categorical([1, 0])))
    _product(sch, block, [rows], columns, (-1, unroll), columns[-1] * pack)


def sampled_conv2d(sch: ansor.Schedule) -> None:
    """The space of `register_conv2d`, by samples."""
    block = sch.get_sblock("conv")
    _, y, x, f, *_, c = sch.get_loops(block)
    tiles = [_sampled(sch, y, 3, 1), _sampled(sch, x, 3, POINTS)]
    filters, steps = _sampled(sch, f, 3, 2 * LANES), _sampled(sch, c, 2, UNROLLED[-1])
    _pad_first(sch)
    pack = int(sch.get(sch.sample_categorical([1, 0])))
    _product(sch, block, tiles, filters, steps, filters[-1] * pack)


def sampled_softmax(sch: ansor.Schedule) -> None:
    """Rows on the cores, each with all its stages; sums and maxima in vectors: `SFM`."""
    names = ("maxelem", "exp", "expsum", "norm")
    largest, exps, sums, norm = (sch.get_sblock(f"T_softmax_{name}") for name in names)
    row, column = sch.get_loops(norm)
    lanes = 4 * LANES
    width = _sampled(sch, column, 2, lanes)
    sch.vectorize(sch.split(column, [None, width[-1]])[1])
    group = _sampled(sch, row, 2, 8)
    outer, inner = sch.split(row, [None, group[-1]])
    sch.parallel(outer)
    for reduction in (sums, largest):
        part = _sampled(sch, sch.get_loops(reduction)[-1], 2, lanes)
        lane = sch.split(sch.get_loops(reduction)[-1], [None, part[-1]])[1]
        partial = sch.rfactor(lane, 1)
        if reduction is sums:
            sch.compute_at(reduction, inner)
            sch.compute_at(partial, inner)
            _vector_sum(sch, partial)
            sch.compute_at(exps, inner)
            sch.vectorize(sch.split(sch.get_loops(exps)[-1], [None, part[-1]])[1])
        else:
            sch.compute_at(reduction, inner)
            sch.compute_at(partial, inner)
            _vector_sum(sch, partial)


def _vector_sum(sch: Any, block: Any) -> None:
    """The loop over the lanes of a sum by parts becomes the innermost."""
    loops = sch.get_loops(block)
    lane, steps = loops[-2:]
    if int(sch.get(lane).extent) == 1 or int(sch.get(steps).extent) == 1:
        return
    sch.reorder(steps, lane)
    sch.vectorize(lane)
    initial = sch.decompose_reduction(block, steps)
    sch.vectorize(sch.get_loops(initial)[-1])


def _sampled(sch: Any, loop: Any, parts: int, most: int) -> tuple[int, ...]:
    """The factors of a sampled tile, as numbers."""
    return tuple(int(sch.get(size)) for size in sch.sample_perfect_tile(loop, parts, most))


def _pad_first(sch: Any) -> None:
    """The padded image is made before, on all cores, in vectors."""
    for block in sch.get_producers(sch.get_sblock("conv")):
        _copy_first(sch, block)


def _product(
    sch: Any,
    block: Any,
    rows: Sequence[Sequence[int]],
    columns: Sequence[int],
    steps: Sequence[int],
    panel: int,
) -> None:
    """Tiles a sum of products.

    Args:
        sch: the schedule.
        block: its axes are a batch, spatial axes, then columns, and reductions.
        rows: factors of the spatial axes but for the columns.
        columns: factors of the columns.
        steps: factors of the last reduction.
        panel: columns of a packed panel; less than a vector or all leave the operand as it is.
    """
    result = sch.cache_write(block, 0, "global")
    if LANES <= panel < columns[0] * columns[1] * columns[2]:
        _pack(sch, block, panel)
    loops = sch.get_loops(block)
    spatial = len(rows) + 1
    batch, axes, reductions = loops[0], loops[1 : 1 + spatial], loops[1 + spatial :]
    tiles = [sch.split(a, [None, *f[1:]]) for a, f in zip(axes, [*rows, columns], strict=True)]
    *outer_steps, last = reductions
    split_step = sch.split(last, [None, *steps[1:]])
    order = [level[0] for level in tiles] + [level[1] for level in tiles]
    inner = [level[2] for level in tiles]
    sch.reorder(batch, *order, split_step[0], *outer_steps, split_step[1], *inner)
    shared = sch.fuse(batch, *order[:spatial])
    sch.parallel(shared)
    sch.reverse_compute_at(result, order[-1])
    sch.vectorize(sch.get_loops(result)[-1])
    for loop in (split_step[1], *inner[:-1]):
        sch.unroll(loop)
    sch.vectorize(inner[-1])
    initial = sch.decompose_reduction(block, split_step[0])
    for loop in sch.get_loops(initial)[-spatial:-1]:
        sch.unroll(loop)


def _pack(sch: Any, block: Any, panel: int) -> None:
    """The second operand is copied into panels of columns, which are contiguous."""
    copy = sch.cache_read(block, 1, "global")

    def panels(*index: Any) -> list[Any]:
        return [index[-1] // panel, *index[:-1], index[-1] % panel]

    rank = len(sch.get_loops(copy))
    order = tirx.IndexMap.from_func(panels, ndim=rank, index_dtype="int32")
    sch.transform_block_layout(copy, order)
    sch.transform_layout(copy, ("write", 0), order)
    _copy_first(sch, copy)


def _copy_first(sch: Any, block: Any) -> None:
    """A copy as a nest of its own: parallel outside, vectors inside."""
    *outer, last = sch.get_loops(block)
    sch.vectorize(sch.split(last, [None, min(4 * LANES, int(sch.get(last).extent))])[1])
    sch.parallel(sch.fuse(*outer[:2]))
