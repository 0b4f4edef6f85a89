"""The inverse of the error function, without iteration: polynomials of `-log(1 - x²)`.

M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2010, describes the method and
gives the coefficients for float32. Those for float64 interpolate `erfinv(x) / x` at Chebyshev
nodes, computed with 40 digits; the relative error is below 1e-15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tvm import tirx


@dataclass(frozen=True)
class Piece:
    """A polynomial for a range of `w = -log(1 - x²)`.

    Attributes:
        below: the end of the range.
        of_root: the variable is the square root of `w`, not `w`.
        centre: subtracted from the variable.
        coefficients: the highest power first.
    """

    below: float
    of_root: bool
    centre: float
    coefficients: tuple[float, ...]


def erfinv(x: Any) -> Any:
    """The number whose error function is the scalar `x`, of float32 or float64."""
    dtype = x.ty.dtype
    w = -tirx.log((_const(1, dtype) - x) * (_const(1, dtype) + x))
    *pieces, last = PIECES[str(dtype)]
    factor = _value(last, w)
    for piece in reversed(pieces):
        factor = tirx.Select(w < _const(piece.below, dtype), _value(piece, w), factor)
    infinite = tirx.Select(x > _const(0, dtype), _const(math.inf, dtype), _const(-math.inf, dtype))
    return tirx.Select(tirx.abs(x) == _const(1, dtype), infinite, factor * x)


def _value(piece: Piece, w: Any) -> Any:
    dtype = w.ty.dtype
    variable = (tirx.sqrt(w) if piece.of_root else w) - _const(piece.centre, dtype)
    total = _const(piece.coefficients[0], dtype)
    for coefficient in piece.coefficients[1:]:
        total = _const(coefficient, dtype) + total * variable
    return total


def _const(value: float, dtype: Any) -> Any:
    return tirx.const(value, dtype)


PIECES = {
    "float32": (
        Piece(
            5.0,
            False,
            2.5,
            (
                2.81022636e-08,
                3.43273939e-07,
                -3.5233877e-06,
                -4.39150654e-06,
                0.00021858087,
                -0.00125372503,
                -0.00417768164,
                0.246640727,
                1.50140941,
            ),
        ),
        Piece(
            math.inf,
            True,
            3.0,
            (
                -0.000200214257,
                0.000100950558,
                0.00134934322,
                -0.00367342844,
                0.00573950773,
                -0.0076224613,
                0.00943887047,
                1.00167406,
                2.83297682,
            ),
        ),
    ),
    "float64": (
        Piece(
            6.25,
            False,
            3.125,
            (
                -2.362369698566107e-22,
                -1.6787330615256773e-19,
                1.1027771591500033e-18,
                1.1125794759379464e-17,
                -1.290702354613073e-16,
                2.166994626283574e-17,
                6.581955305929239e-15,
                -4.0554139746886e-14,
                -8.106594456438496e-14,
                2.6335724924608484e-12,
                -1.2977505202014966e-11,
                -5.4154417754696635e-11,
                1.0512202440121784e-09,
                -4.112633104297614e-09,
                -2.907038666019143e-08,
                4.2347877672780653e-07,
                -1.3654691796592068e-06,
                -1.3882523361276876e-05,
                0.0001867342080212427,
                -0.0007407025341669402,
                -0.006033670871427011,
                0.2401581824255897,
                1.6536545626831027,
            ),
        ),
        Piece(
            16.0,
            True,
            3.25,
            (
                9.284332225420571e-08,
                -2.697313682066162e-07,
                1.3250759477977463e-08,
                1.497191022600222e-06,
                -4.008956966932278e-06,
                2.9264777314239854e-06,
                1.2472740144742724e-05,
                -4.7319187369358214e-05,
                6.828561398530996e-05,
                2.4031286377073694e-05,
                -0.00035503764895782253,
                0.0009532893618552461,
                -0.0016882755445265592,
                0.0024914420969979908,
                -0.003751208508030541,
                0.005370914553573593,
                1.0052589676941646,
                3.0838856104922208,
            ),
        ),
        Piece(
            math.inf,
            True,
            5.05,
            (
                5.180570547264763e-12,
                -2.517622866652299e-10,
                1.1876195494584e-09,
                -2.890867401094416e-09,
                5.663473726098339e-09,
                -1.094253110698375e-08,
                2.1904751298638946e-08,
                -5.50857698235918e-08,
                2.0159168167983664e-07,
                -9.070354216083459e-07,
                4.193858544647826e-06,
                -1.8374544958981777e-05,
                7.124031504618645e-05,
                -0.0002003120059910747,
                -0.0001698580914847901,
                1.0102850175977565,
                4.90042105144364,
            ),
        ),
    ),
}
