"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import relax, te

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter

op = relax.op


def matmul(c: Context) -> Any:
    """Products of matrices, the other axes broadcast."""
    return product(c, c.operand(0), c.operand(1))


def product(c: Context, a: Any, b: Any) -> Any:
    """A matrix product; 16-bit numbers are summed in float32."""
    dtype = dtype_of(a)
    if 0 in (shape_of(a)[-1], *shape_of(a), *shape_of(b)):
        return _empty(c, a, b)
    if dtype in HALF:
        return c.cast(c.emit(op.matmul(c.cast(a, "float32"), c.cast(b, "float32"))), dtype)
    return c.emit(op.matmul(a, b))


def _empty(c: Context, a: Any, b: Any) -> Any:
    shape = np.matmul(np.zeros(shape_of(a), bool), np.zeros(shape_of(b), bool)).shape
    return c.broadcast(c.number(0, a), shape)


def gemm(c: Context) -> Any:
    """`alpha * A @ B + beta * C`, A and B transposed or not."""
    a, b = c.operand(0), c.operand(1)
    a = c.emit(op.permute_dims(a, [1, 0])) if c.attr("transA", 0) else a
    b = c.emit(op.permute_dims(b, [1, 0])) if c.attr("transB", 0) else b
    result = _scaled(c, product(c, a, b), c.attr("alpha", 1.0))
    if not c.has(2):
        return result
    return op.add(result, _scaled(c, c.operand(2), c.attr("beta", 1.0)))


def _scaled(c: Context, x: Any, factor: float) -> Any:
    if factor == 1.0:
        return x
    if not is_float(dtype_of(x)):
        wide = c.emit(op.multiply(c.cast(x, "float32"), c.number(factor, c.cast(x, "float32"))))
        return c.cast(wide, dtype_of(x))
    return c.emit(op.multiply(x, c.number(factor, x)))


def einsum(c: Context) -> Any:
    """Sums of products by axes with letters, from left to right two operands at a time."""
    text = c.attr("equation").replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    terms, result = _without_dots(
        terms, result, [len(shape_of(x)) for x in c.operands], bool(arrow)
    )
    operands = [_diagonal(c, x, term) for x, term in zip(c.operands, terms, strict=True)]
    current, letters = operands[0]
    for place, (x, term) in enumerate(operands[1:], 1):
        later = set(result).union(*(t for _, t in operands[place + 1 :]))
        current, letters = _pair(c, current, letters, x, term, later)
    summed = [a for a, letter in enumerate(letters) if letter not in result]
    if summed:
        current = c.emit(op.sum(current, summed))
        letters = "".join(letter for letter in letters if letter in result)
    order = [letters.index(letter) for letter in result]
    return c.emit(op.permute_dims(current, order)) if order != sorted(order) else current


def _without_dots(
    terms: list[str], result: str, ranks: list[int], is_explicit: bool
) -> tuple[list[str], str]:
    """Terms with letters for dots, and the result, which has all single letters unless given."""
    free = [chr(k) for k in range(0x3B1, 0x3B1 + 24)]
    counts = [r - len(t) + 3 if "..." in t else 0 for t, r in zip(terms, ranks, strict=True)]
    most = max(counts)
    named = [
        t.replace("...", "".join(free[most - n : most])) for t, n in zip(terms, counts, strict=True)
    ]
    dots = "".join(free[:most])
    if is_explicit:
        return named, result.replace("...", dots)
    text = "".join(t.replace("...", "") for t in terms)
    return named, dots + "".join(sorted(k for k in set(text) if text.count(k) == 1))


def _diagonal(c: Context, x: Any, term: str) -> tuple[Any, str]:
    """Axes of equal letters are read together."""
    letters = "".join(dict.fromkeys(term))
    if len(letters) == len(term):
        return x, term
    from_letter = {letter: shape_of(x)[term.index(letter)] for letter in letters}

    def define(data: Any) -> Any:
        def element(*at: Any) -> Any:
            return data(*(at[letters.index(letter)] for letter in term))

        return te.compute([from_letter[k] for k in letters], element, name="diagonal")

    return c.te(define, x, name="diagonal"), letters


def _pair(c: Context, a: Any, left: str, b: Any, right: str, later: set[str]) -> tuple[Any, str]:
    """A batched matrix product: letters are shared and kept, of one side, or summed."""
    a, left = _summed(c, a, left, set(right) | later)
    b, right = _summed(c, b, right, set(left) | later)
    size = dict(zip(left, shape_of(a), strict=True))
    for letter, extent in zip(right, shape_of(b), strict=True):
        size[letter] = max(size.get(letter, 1), extent)
    batch = [k for k in left if k in right and k in later]
    inner = [k for k in left if k in right and k not in later]
    rows = [k for k in left if k not in right]
    columns = [k for k in right if k not in left]
    lhs = _arranged(c, a, left, batch, rows, inner, size)
    rhs = _arranged(c, b, right, batch, inner, columns, size)
    found = product(c, lhs, rhs)
    letters = "".join([*batch, *rows, *columns])
    return c.reshape(found, [size[k] for k in letters]), letters


def _summed(c: Context, x: Any, letters: str, kept: set[str]) -> tuple[Any, str]:
    axes = [a for a, letter in enumerate(letters) if letter not in kept]
    if not axes:
        return x, letters
    return c.emit(op.sum(x, axes)), "".join(k for k in letters if k in kept)


def _arranged(
    c: Context, x: Any, letters: str, batch: list[str], first: list[str], second: list[str],
    size: dict[str, int],
) -> Any:  # fmt: skip
    """`[*batch, product of first, product of second]`."""
    order = [*batch, *first, *second]
    axes = [letters.index(k) for k in order]
    turned = c.emit(op.permute_dims(x, axes)) if axes != sorted(axes) else x
    turned = c.broadcast(turned, [size[k] for k in order])
    count = [int(np.prod([size[k] for k in part], dtype=np.int64)) for part in (first, second)]
    return c.reshape(turned, [*(size[k] for k in batch), *count])


def det(c: Context) -> Any:
    """Refused."""
    raise OperatorError("determinants are not supported")


CONVERTERS: Mapping[str, Converter] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "Einsum": einsum,
    "Det": det,
}
