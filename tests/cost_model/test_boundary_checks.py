"""Which copies of a block check for padding, against all iterations of the loops around it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from definitions import sketches
from rows import population_of

from ansor.features.profile import StageProfile, profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Sketch
from ansor.targets.cpu.draft.boundary_checks import checked_share

SIZE, KERNEL = 14, 3  # of a depthwise convolution with one element of padding all around


@pytest.fixture(scope="module")
def inlined() -> Sketch:
    """Its padding is inlined."""
    (sketch, *_) = (s for s in sketches("depthwise_conv2d") if s.dag.stages["conv"].has_branch)
    return sketch


def conv(sketch: Sketch, y: int, x: int, ry: int, rx: int) -> tuple[StageProfile, np.ndarray]:
    """A tile of y by x points and ry by rx of the kernel, and the copies that it leaves."""
    values = {
        "conv.y": (SIZE // y, 1, 1, y),
        "conv.x": (SIZE // x, 1, 1, x),
        "conv.ry": (KERNEL // ry, ry),
        "conv.rx": (KERNEL // rx, rx),
    }
    found = profile(build_nest(population_of(sketch, [values])))["conv"]
    last = {"y": 3, "x": 3, "ry": 1, "rx": 1}
    axes = found.nest.stage.axes
    loops = [found.nest.loops[number] for number in found.active]
    inside = [last.get(axes[loop.axis].name) == loop.part for loop in loops]
    copies = np.where(np.asarray(inside)[:, None], found.extents, 1).astype(np.float32)
    assert copies.prod() == y * x * ry * rx
    return found, copies


def checked_along(points: int, kernel: int) -> float:
    """Share of the pairs of a point and an element of the kernel, in a tile, that need a check.

    Some iterations of the loops around the tile then read padding, and others data."""
    outer = list(product(range(0, SIZE, points), range(0, KERNEL, kernel)))
    checked = 0
    for point, element in product(range(points), range(kernel)):
        reads = {0 <= y + point + r + element - 1 < SIZE for y, r in outer}
        checked += len(reads) == 2
    return checked / (points * kernel)


@pytest.mark.parametrize(
    ("y", "x", "ry", "rx"),
    [(1, 1, 1, 1), (7, 1, 1, 1), (2, 7, 1, 1), (1, 1, 3, 3), (7, 1, 1, 3), (1, 14, 3, 3)],
)
def test_copies_check_where_iterations_differ(
    inlined: Sketch, y: int, x: int, ry: int, rx: int
) -> None:
    found, copies = conv(inlined, y, x, ry, rx)
    expected = 1 - (1 - checked_along(y, ry)) * (1 - checked_along(x, rx))
    assert checked_share(found, copies).tolist() == [pytest.approx(expected)]


@pytest.mark.parametrize(("y", "ry"), [(2, 3), (7, 3), (14, 3), (14, 1)])
def test_points_with_all_of_the_kernel_check_no_less(inlined: Sketch, y: int, ry: int) -> None:
    """How many pairs reach the same place is not counted: the outermost are taken for as many as
    the others."""
    found, copies = conv(inlined, y, 14, ry, 3)
    (share,) = checked_share(found, copies).tolist()
    assert checked_along(14, 3) == 0
    assert checked_along(y, ry) <= share + 1e-6 <= 1 + 1e-6
    assert (share == 0) == (checked_along(y, ry) == 0)


def test_nobody_checks_without_padding(inlined: Sketch) -> None:
    (other, *_) = (s for s in sketches("depthwise_conv2d") if not s.dag.stages["conv"].has_branch)
    found, copies = conv(other, 2, 2, 1, 1)
    assert checked_share(found, copies).tolist() == [0.0]
