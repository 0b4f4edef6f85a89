"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import HALF, axes_of, axis_of, dtype_of, is_float, shape_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.rewrite import constant

op = relax.op
Reduce = Callable[[Context, Any, list[int], bool], Any]


def _sum(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.sum(x, axes, keep)


def _mean(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.mean(x, axes, keep)


def _prod(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.prod(x, axes, keep)


def _max(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return _extreme(c, x, axes, keep, -1) if is_float(dtype_of(x)) else op.max(x, axes, keep)


def _min(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return _extreme(c, x, axes, keep, 1) if is_float(dtype_of(x)) else op.min(x, axes, keep)


def _extreme(c: Context, x: Any, axes: list[int], keep: bool, sign: int) -> Any:
    """Begins with an infinity: TVM's begins with the largest finite number."""
    shape = shape_of(x)
    better = tirx.max if sign < 0 else tirx.min
    reducer = te.comm_reducer(
        lambda a, b: better(a, b), lambda t: tirx.const(sign * np.inf, t), name="extreme"
    )

    def define(data: Any) -> Any:
        inner = {a: te.reduce_axis((0, shape[a]), f"k{a}") for a in axes}

        def element(*at: Any) -> Any:
            rest = iter(at)
            places = [inner[a] if a in inner else next(rest) for a in range(len(shape))]
            return reducer(data(*places), axis=list(inner.values()))

        return te.compute(_reduced(shape, axes, False), element, name="extreme")

    found = c.te(define, x, name="max" if sign < 0 else "min")
    return c.reshape(found, _reduced(shape, axes, keep))


def _l1(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.sum(op.abs(x), axes, keep)


def _square_sum(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.sum(op.multiply(x, x), axes, keep)


def _l2(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    if is_float(dtype_of(x)):
        return op.sqrt(_square_sum(c, x, axes, keep))
    wide = c.cast(x, "float64")
    return c.cast(c.emit(op.sqrt(_square_sum(c, wide, axes, keep))), dtype_of(x))


def _log_sum(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    return op.log(op.sum(x, axes, keep))


def _log_sum_exp(c: Context, x: Any, axes: list[int], keep: bool) -> Any:
    """Exponents are taken of differences from the largest element, where that is finite."""
    high = c.emit(_max(c, x, axes, True))
    finite = op.less(op.abs(high), c.number(np.inf, x))
    base = c.emit(op.where(finite, high, c.number(0, x)))
    total = op.log(op.sum(op.exp(op.subtract(x, base)), axes, keep))
    shape = _reduced(shape_of(x), axes, keep)
    return op.add(total, c.reshape(base, shape))


# A function, and what it gives for no elements.
_REDUCTIONS: Mapping[str, tuple[Reduce, float]] = {
    "ReduceSum": (_sum, 0),
    "ReduceMean": (_mean, np.nan),
    "ReduceProd": (_prod, 1),
    "ReduceMax": (_max, -np.inf),
    "ReduceMin": (_min, np.inf),
    "ReduceL1": (_l1, 0),
    "ReduceL2": (_l2, 0),
    "ReduceSumSquare": (_square_sum, 0),
    "ReduceLogSum": (_log_sum, -np.inf),
    "ReduceLogSumExp": (_log_sum_exp, -np.inf),
}


def _reduced(shape: tuple[int, ...], axes: list[int], keep: bool) -> list[int]:
    kept = [1 if a in axes else e for a, e in enumerate(shape)]
    return kept if keep else [e for a, e in enumerate(shape) if a not in axes]


def _reduction(name: str) -> Converter:
    function, nothing = _REDUCTIONS[name]

    def convert(c: Context) -> Any:
        x, given = c.operand(0), c.listed(1, "axes")
        shape, dtype = shape_of(x), dtype_of(x)
        if not given and c.attr("noop_with_empty_axes", 0):
            axes: list[int] = []
        else:
            axes = axes_of(given, len(shape)) if given else list(range(len(shape)))
        keep = bool(c.attr("keepdims", 1))
        if 0 in shape:
            result = _reduced(shape, axes, keep)
            return constant(np.full(result, _limit(nothing, dtype)), dtype)
        if not axes:
            return _alone(c, name, x)
        wide = {"bool": "uint8", **dict.fromkeys(HALF, "float32")}.get(dtype, dtype)
        found = c.emit(function(c, c.cast(x, wide), axes, keep))
        return c.cast(found, dtype)

    return convert


def _alone(c: Context, name: str, x: Any) -> Any:
    """Each element reduced by itself."""
    if name in ("ReduceL1", "ReduceL2"):
        return op.abs(x)
    if name == "ReduceSumSquare":
        return op.multiply(x, x)
    return op.log(x) if name == "ReduceLogSum" else x


def _limit(value: float, dtype: str) -> Any:
    """An infinity as the end of the range of a dtype."""
    if np.isfinite(value) or "float" in dtype:
        return value
    if dtype == "bool":
        return value > 0
    if np.isnan(value):
        raise OperatorError("the mean of no integers is not defined")
    limits = np.iinfo(dtype)
    return limits.max if value > 0 else limits.min


def _arg(largest: bool) -> Converter:
    def convert(c: Context) -> Any:
        x = c.operand(0)
        rank = len(shape_of(x))
        axis, keep = axis_of(c.attr("axis", 0), rank), bool(c.attr("keepdims", 1))
        if dtype_of(x) in HALF:
            x = c.cast(x, "float32")
        last = bool(c.attr("select_last_index", 0))
        data = c.emit(op.flip(x, axis)) if last else x
        place = c.emit((op.argmax if largest else op.argmin)(data, axis, keep))
        place = c.cast(place, "int64")
        if not last:
            return place
        return op.subtract(c.number(shape_of(x)[axis] - 1, place), place)

    return convert


CONVERTERS: Mapping[str, Converter] = {
    **{name: _reduction(name) for name in _REDUCTIONS},
    "ArgMax": _arg(True),
    "ArgMin": _arg(False),
}
