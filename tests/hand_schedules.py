"""Templates and schedule functions that the tests share."""

from __future__ import annotations

from typing import Any

from tvm import te

import ansor


def matmul_tensors(rows: int, columns: int, depth: int) -> list[te.Tensor]:
    a = te.placeholder((rows, depth), name="A")
    b = te.placeholder((depth, columns), name="B")
    r = te.reduce_axis((0, depth), name="r")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, c]


@ansor.template("tiled_matmul")
def tiled_matmul(cfg: Any, rows: int, columns: int, depth: int) -> Any:
    sch = cfg.schedule(matmul_tensors(rows, columns, depth))
    y, x, r = sch.get_loops(sch.get_sblock("C"))
    y0, y1 = cfg.split("tile_y", y, 2).apply(sch, y)
    x0, x1 = cfg.split("tile_x", x, 2, policy="power2", max_factor=32).apply(sch, x)
    r0, r1 = cfg.split("tile_r", r, 2, filter=lambda tile: tile.size[-1] <= 4).apply(sch, r)
    cfg.reorder("order", [r1, y1], candidates=[[r1, y1], [y1, r1]])
    sch.reorder(y0, x0, r0, *(([r1, y1], [y1, r1])[cfg["order"].perm[0]]), x1)
    if cfg.knob("parallel", [False, True]):
        sch.parallel(sch.fuse(y0, x0))
    sch.vectorize(x1)
    cfg.annotate("inner", [r1], "try_unroll").apply(sch, [r1])
    return sch


@ansor.template("tiled_conv2d")
def tiled_conv2d(cfg: Any, size: int, channels: int, filters: int) -> Any:
    data = te.placeholder((1, size + 2, size + 2, channels), name="data")
    weight = te.placeholder((3, 3, channels, filters), name="weight")
    ry, rx = (te.reduce_axis((0, 3), name=name) for name in ("ry", "rx"))
    rc = te.reduce_axis((0, channels), name="rc")
    conv = te.compute(
        (1, size, size, filters),
        lambda n, y, x, f: te.sum(
            data[n, y + ry, x + rx, rc] * weight[ry, rx, rc, f], axis=[ry, rx, rc]
        ),
        name="conv",
    )
    out = te.compute(conv.shape, lambda *i: te.max(conv(*i), 0.0), name="out")
    sch = cfg.schedule([data, weight, out])
    _, y, x, f = sch.get_loops(sch.get_sblock("out"))
    x0, x1 = cfg.split("tile_x", x).apply(sch, x)
    f0, f1 = cfg.split("tile_f", f, max_factor=16).apply(sch, f)
    sch.reorder(y, x0, f0, x1, f1)
    sch.compute_at(sch.get_sblock("conv"), f0)
    sch.vectorize(f1)
    sch.parallel(y)
    return sch


def sampled_matmul(sch: ansor.Schedule) -> None:
    """A function of a schedule: the place of a copy, tiles and a number that decides."""
    block = sch.get_sblock("C")
    copy = sch.cache_write(block, 0, "global")
    y, x, r = sch.get_loops(block)
    ys = sch.split(y, sch.sample_perfect_tile(y, 2, 16, name="y"))
    xs = sch.split(x, sch.sample_perfect_tile(x, 2, 32, name="x"))
    sch.reorder(ys[0], xs[0], r, ys[1], xs[1])
    sch.reverse_compute_at(copy, xs[0])
    sch.vectorize(xs[1])
    steps = sch.sample_categorical([0, 16, 64], [0.3, 0.3, 0.4])
    if int(sch.get(steps)) > 0:
        sch.annotate(ys[0], "pragma_auto_unroll_max_step", steps)
    sch.parallel(ys[0])
