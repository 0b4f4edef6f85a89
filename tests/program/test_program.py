"""Properties of programs."""

from __future__ import annotations

import numpy as np
from definitions import sketches

from ansor.program.program import Program, shared_axes
from ansor.program.sketch import Population
from ansor.program.steps import MultiLevelTile


def test_shared_axes_are_spatial_and_split_outermost() -> None:
    tile = MultiLevelTile("C", "SSRSRS", ("C.i", "C.j", "", "C.k"))
    values = {"C.i": (2, 1, 3, 4), "C.j": (1, 8, 1, 1), "C.k": (16, 2), "C.parallel": (2,)}
    assert shared_axes(Program("s", (tile,), values)) == ("C.i",)
    host = MultiLevelTile("D", "SSSFV", ("D.y", "D.f"))
    both = Program("s", (tile, host), {**values, "D.y": (7, 1, 1), "D.f": (1, 1, 2, 16)})
    assert shared_axes(both) == ("C.i", "D.y")
    assert shared_axes(Program()) == ()


def test_every_tiled_sketch_has_several_ways_to_share() -> None:
    sketch = sketches("matmul")[0]
    rows = np.asarray([[d.size - 1 for d in sketch.decisions], [0] * len(sketch.decisions)])
    programs = [Population(sketch, rows).program(i) for i in range(2)]
    assert len({shared_axes(program) for program in programs}) == 2
