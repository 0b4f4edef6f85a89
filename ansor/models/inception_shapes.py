"""Every convolution of Inception-v3, as data."""

from __future__ import annotations

from dataclasses import dataclass

MEAN = "mean"
MAX = "max"


@dataclass(frozen=True)
class ConvShape:
    """A convolution without bias, with batch normalisation and ReLU."""

    name: str
    channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padded: bool = True  # with stride one, height and width stay
    epsilon: float = 1e-3  # of the batch normalisation

    @property
    def padding(self) -> tuple[int, int]:
        """Rows above and below, columns on the left and on the right."""
        return (self.kernel[0] // 2, self.kernel[1] // 2) if self.padded else (0, 0)


@dataclass(frozen=True)
class Branch:
    """A pooling, or none; convolutions in a row, or none; two side by side, or none.

    `pool` is the `MEAN` of 3×3 values with stride one, or their `MAX` with stride two.
    """

    convs: tuple[ConvShape, ...] = ()
    forks: tuple[ConvShape, ...] = ()
    pool: str = ""


@dataclass(frozen=True)
class Mixed:
    """Branches side by side, concatenated."""

    name: str
    branches: tuple[Branch, ...]


def _tower(name: str, *convs: tuple[int, int, int]) -> tuple[ConvShape, ...]:
    """Padded convolutions `name_1`, `name_2`, ...: channels, height, width."""
    return tuple(ConvShape(f"{name}_{i}", c, (h, w)) for i, (c, h, w) in enumerate(convs, start=1))


def _halving(name: str, channels: int) -> ConvShape:
    return ConvShape(name, channels, (3, 3), stride=2, padded=False)


def _forks(name: str) -> tuple[ConvShape, ...]:
    return ConvShape(f"{name}a", 384, (1, 3)), ConvShape(f"{name}b", 384, (3, 1))


def _pooled(channels: int) -> Branch:
    return Branch((ConvShape("branch_pool", channels),), pool=MEAN)


def _small(name: str, pooled: int) -> Mixed:
    return Mixed(
        name,
        (
            Branch((ConvShape("branch1x1", 64),)),
            Branch(_tower("branch5x5", (48, 1, 1), (64, 5, 5))),
            Branch(_tower("branch3x3dbl", (64, 1, 1), (96, 3, 3), (96, 3, 3))),
            _pooled(pooled),
        ),
    )


def _factorised(name: str, inner: int) -> Mixed:
    once = ((inner, 1, 1), (inner, 1, 7), (192, 7, 1))
    twice = ((inner, 1, 1), (inner, 7, 1), (inner, 1, 7), (inner, 7, 1), (192, 1, 7))
    return Mixed(
        name,
        (
            Branch((ConvShape("branch1x1", 192),)),
            Branch(_tower("branch7x7", *once)),
            Branch(_tower("branch7x7dbl", *twice)),
            _pooled(192),
        ),
    )


def _forked(name: str) -> Mixed:
    return Mixed(
        name,
        (
            Branch((ConvShape("branch1x1", 320),)),
            Branch(_tower("branch3x3", (384, 1, 1)), _forks("branch3x3_2")),
            Branch(_tower("branch3x3dbl", (448, 1, 1), (384, 3, 3)), _forks("branch3x3dbl_3")),
            _pooled(192),
        ),
    )


_TO_17 = Mixed(
    "Mixed_6a",
    (
        Branch((_halving("branch3x3", 384),)),
        Branch((*_tower("branch3x3dbl", (64, 1, 1), (96, 3, 3)), _halving("branch3x3dbl_3", 96))),
        Branch(pool=MAX),
    ),
)
_TO_8 = Mixed(
    "Mixed_7a",
    (
        Branch((*_tower("branch3x3", (192, 1, 1)), _halving("branch3x3_2", 320))),
        Branch(
            (
                *_tower("branch7x7x3", (192, 1, 1), (192, 1, 7), (192, 7, 1)),
                _halving("branch7x7x3_4", 192),
            )
        ),
        Branch(pool=MAX),
    ),
)

# A pooling follows each row of the stem.
STEM = (
    (
        _halving("Conv2d_1a_3x3", 32),
        ConvShape("Conv2d_2a_3x3", 32, (3, 3), padded=False),
        ConvShape("Conv2d_2b_3x3", 64, (3, 3)),
    ),
    (
        ConvShape("Conv2d_3b_1x1", 80),
        ConvShape("Conv2d_4a_3x3", 192, (3, 3), padded=False),
    ),
)
MIXED = (
    *(
        _small(f"Mixed_5{letter}", pooled)
        for letter, pooled in zip("bcd", (32, 64, 64), strict=True)
    ),
    _TO_17,
    *(
        _factorised(f"Mixed_6{letter}", inner)
        for letter, inner in zip("bcde", (128, 160, 160, 192), strict=True)
    ),
    _TO_8,
    *(_forked(f"Mixed_7{letter}") for letter in "bc"),
)
