"""The matrices of Winograd's minimal filtering F(m×m, r×r).

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016), section 4; made as
Toom and Cook multiply polynomials, by their values at a few points. With a stride of 2 and three
taps, even and odd inputs are filtered apart, after Huang et al., "DWM: A Decomposable Winograd
Method for Convolution Acceleration" (AAAI 2020): by two taps and by one. So are even and odd
outputs of the transpose of such a convolution: each meets two of its four taps. With more taps,
the inputs of each phase are channels of their own, and all phases are filtered together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ansor.config import GRAPH

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Transform:
    """The matrices of F(m×m, r×r), equation 8 of the paper; a tile takes d inputs a side.

    Attributes:
        data: `[s, d]`, B transposed.
        weight: `[s, r]`, G.
        output: `[m, s]`, A transposed.
        stride: of the convolution.
        is_transposed: whether it is the transpose of a convolution, with a padding of one, of
            which two outputs begin at each input.
        phases: along each side; the inputs at this distance are an image of their own. The taps
            that they meet filter it with a stride of one.
    """

    data: Matrix
    weight: Matrix
    output: Matrix
    stride: int = 1
    is_transposed: bool = False
    phases: int = 1

    @property
    def taps(self) -> int:
        """Taps of a kernel along each side, for each phase (r)."""
        return len(self.weight[0])

    @property
    def inputs(self) -> int:
        """Inputs of a tile along each side, for each phase (d)."""
        return len(self.data[0])

    @property
    def step(self) -> int:
        """Inputs of each phase from one tile to the next."""
        if self.is_transposed:
            return self.tile // self.stride
        return self.tile * self.stride // self.phases

    @property
    def tile(self) -> int:
        """Outputs along each side (m)."""
        return len(self.output)

    @property
    def size(self) -> int:
        """Points at which is multiplied, along each side (s)."""
        return len(self.data)

    def computes(
        self, kernel: Sequence[int], stride: int, dilation: int = 1, is_transposed: bool = False
    ) -> bool:
        """Whether it computes convolutions with this kernel (rows and columns) and stride; a
        dilated one must have a stride of one."""
        form = (stride, is_transposed) == (self.stride, self.is_transposed)
        return form and self.takes(kernel) and 1 in (stride, dilation)

    def takes(self, kernel: Sequence[int]) -> bool:
        """Whether it is made for kernels of this size (rows and columns)."""
        return all(-(-size // self.phases) == self.taps for size in kernel)

    def shape_of(self, weight: Sequence[int]) -> tuple[int, ...]:
        """Of transformed weights, `[s, s, phases² c, f]`, by that of others, `[h, w, c, f]`; with a
        depth, `[s, s, d, phases² c, f]` by `[d, h, w, c, f]`."""
        *depth, _, _, channels, filters = weight
        return self.size, self.size, *depth, self.phases**2 * channels, filters


def minimal(tile: int, taps: int, points: Sequence[Fraction | int]) -> Transform:
    """F(m×m, r×r) of all of these points and infinity, ``m + r - 2`` of them.

    With integers, the matrix that data is multiplied by holds integers: what division there is, is
    done to the weights.
    """
    at = [Fraction(point) for point in points]
    if len(at) != tile + taps - 2:
        raise ValueError(f"points: F({tile}, {taps}) takes {tile + taps - 2}, not {len(at)}")
    data, weight = [], []
    for point in at:
        others = [other for other in at if other != point]
        row, scale = _whole([*_product(others), Fraction(0)])
        over = scale * math.prod(point - other for other in others)
        data.append(row)
        weight.append([point**power / over for power in range(taps)])
    row, scale = _whole(_product(at))
    data.append(row)
    weight.append([*[Fraction(0)] * (taps - 1), Fraction(1, scale)])
    powers = [[point**power for point in at] for power in range(tile)]
    last = [Fraction(power == tile - 1) for power in range(tile)]
    output = [[*row, end] for row, end in zip(powers, last, strict=True)]
    return Transform(_matrix(data), _matrix(weight), _matrix(output))


def _whole(row: list[Fraction]) -> tuple[list[Fraction], int]:
    """A row times the least number that makes integers of it, and this number."""
    scale = math.lcm(*(value.denominator for value in row))
    return [value * scale for value in row], scale


def _product(roots: Sequence[Fraction]) -> list[Fraction]:
    """Coefficients of the polynomial with these roots, that of the lowest power first."""
    found = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *found], [*(root * value for value in found), Fraction(0)]
        found = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return found


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in rows)


def _of_both_phases(one: Transform) -> Transform:
    """The transpose of a convolution by four taps with a stride of 2, from F(m, 2).

    Even outputs meet the last tap and the second, odd ones the third and the first, one input
    further on.
    """
    none = (0.0,) * one.size
    return Transform(
        data=(*((*row, 0) for row in one.data), *((0, *row) for row in one.data)),
        weight=(*((0, b, 0, a) for a, b in one.weight), *((b, 0, a, 0) for a, b in one.weight)),
        output=tuple(own for row in one.output for own in ((*row, *none), (*none, *row))),
        stride=2,
        is_transposed=True,
    )


def _by_phases(one: Transform, stride: int) -> Transform:
    """The transform for inputs and taps at a distance of `stride`."""
    return replace(one, stride=stride, phases=stride)


def is_nearly_whole(sizes: Sequence[int], transform: Transform, dilation: int = 1) -> bool:
    """Whether few points are computed beyond an output of such sizes."""
    step = transform.tile * dilation
    whole = math.prod(-(-size // step) * step for size in sizes)
    return whole <= math.prod(sizes) * (1 + GRAPH.max_tile_waste)


_HALF = Fraction(1, 2)
_POINTS = (0, 1, -1, 2, -2, _HALF, -_HALF)
F2, F3, F4 = (minimal(tile, 3, _POINTS[: tile + 1]) for tile in (2, 3, 4))
# F(2, 2) on inputs 0, 2 and 4, and what 1 and 3 are multiplied by.
F2_STRIDE2 = Transform(
    data=((1, 0, -1, 0, 0), (0, 0, 1, 0, 0), (0, 0, 1, 0, -1), (0, 1, 0, 0, 0), (0, 0, 0, 1, 0)),
    weight=((1, 0, 0), (1, 0, 1), (0, 0, 1), (0, 1, 0), (0, 1, 0)),
    output=((1, 1, 0, 1, 0), (0, 1, -1, 0, 1)),
    stride=2,
)
F2_TRANSPOSED, F4_TRANSPOSED = (_of_both_phases(minimal(m, 2, _POINTS[:m])) for m in (2, 4))
F2_WIDE, F4_WIDE = (minimal(tile, 5, _POINTS[: tile + 3]) for tile in (2, 4))
F2_PHASES, F3_PHASES, F4_PHASES = (
    tuple(
        _by_phases(minimal(tile, taps, _POINTS[: tile + taps - 2]), stride)
        for taps, stride in ((3, 2), (4, 2), (3, 4))
    )
    for tile in (2, 3, 4)
)
