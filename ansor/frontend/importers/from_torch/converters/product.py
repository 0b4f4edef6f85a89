"""Products of matrices and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax

from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import is_float, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, number
from ansor.frontend.importers.from_torch.converters.registry import converts
from ansor.frontend.importers.operators.by_rank import (
    CONVOLUTIONS,
    SPATIAL,
    TRANSPOSED_CONVOLUTIONS,
)

op = relax.op


def matmul(context: Context, x: Any, other: Any, dtype: str) -> Any:
    """A product of matrices in the dtype; zero where nothing is summed up."""
    if shape_of(x)[-1] == 0:
        return op.zeros(list(context.shape), dtype)
    return context.emit(op.matmul(x, other, out_dtype=dtype))


@converts("mm.default", "bmm.default", "matmul.default", "dot.default", "mv.default")
def product(
    context: Context,
    x: Any,
    mat2: Any = None,
    other: Any = None,
    tensor: Any = None,
    vec: Any = None,
) -> Any:
    """A product of matrices, or of several."""
    right = next(operand for operand in (mat2, other, tensor, vec) if operand is not None)
    return matmul(context, x, right, context.dtype)


@converts("_int_mm.default")
def int_mm(context: Context, x: Any, mat2: Any) -> Any:
    """A product of matrices of bytes, summed up in 32 bits."""
    return matmul(context, context.cast(x, "int32"), context.cast(mat2, "int32"), "int32")


@converts("addmm.default")
def addmm(context: Context, x: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * mat1 @ mat2`."""
    return _with_bias(context, x, matmul(context, mat1, mat2, context.dtype), beta, alpha)


@converts("addmv.default")
def addmv(context: Context, x: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * mat @ vec`."""
    return _with_bias(context, x, matmul(context, mat, vec, context.dtype), beta, alpha)


@converts("baddbmm.default")
def baddbmm(context: Context, x: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * batch1 @ batch2`."""
    return _with_bias(context, x, matmul(context, batch1, batch2, context.dtype), beta, alpha)


@converts("addbmm.default")
def addbmm(context: Context, x: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * ` the sum of the products of a batch."""
    total = context.emit(op.sum(matmul(context, batch1, batch2, context.dtype), [0]))
    return _with_bias(context, x, total, beta, alpha)


def _with_bias(context: Context, bias: Any, result: Any, beta: Any, alpha: Any) -> Any:
    """`beta * bias + alpha * result`; a `beta` of zero hides infinities, as in PyTorch."""
    dtype = context.dtype
    if not is_float(dtype) and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise OperatorError("fractions of integers are not supported")
    if alpha != 1:
        result = context.emit(op.multiply(result, number(alpha, dtype)))
    if beta == 0:
        return result
    if beta != 1:
        bias = context.emit(op.multiply(bias, number(beta, dtype)))
    return op.add(bias, result)


@converts("_trilinear.default")
def trilinear(
    context: Context,
    i1: Any,
    i2: Any,
    i3: Any,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:
    """Three tensors with new axes, multiplied and summed up; unrolling is a matter of speed."""
    first, second, third = (
        context.emit(op.expand_dims(tensor, list(axes))) if axes else tensor
        for tensor, axes in ((i1, expand1), (i2, expand2), (i3, expand3))
    )
    total = context.emit(op.multiply(context.emit(op.multiply(first, second)), third))
    return op.sum(total, list(sumdim)) if sumdim else total


@converts("convolution.default")
def convolution(
    context: Context,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """A convolution over lines, areas or volumes, transposed or not."""
    ndim = len(shape_of(x)) - 2
    if ndim not in CONVOLUTIONS:
        raise OperatorError(f"convolutions over {ndim} dimensions are not supported")
    settings: dict[str, Any] = {
        "strides": _each(stride, ndim),
        "padding": _each(padding, ndim),
        "dilation": _each(dilation, ndim),
        "groups": groups,
        "data_layout": f"NC{SPATIAL[ndim]}",
        "kernel_layout": f"{'IO' if transposed else 'OI'}{SPATIAL[ndim]}",
        "out_dtype": context.dtype,
    }
    if transposed:
        settings |= _further_output(settings, _each(output_padding, ndim))
    function = (TRANSPOSED_CONVOLUTIONS if transposed else CONVOLUTIONS)[ndim]
    result = context.emit(function(x, weight, **settings))
    if bias is None:
        return result
    return op.add(result, context.reshape(bias, (1, shape_of(bias)[0], *[1] * ndim)))


def _further_output(settings: dict[str, Any], further: list[int]) -> dict[str, Any]:
    """The additional extent of a transposed convolution's result; Relax supports less than a
    stride.

    The rest is padding that is not cut off at the end.
    """
    strides, padding = settings["strides"], settings["padding"]
    small = [f % s for f, s in zip(further, strides, strict=True)]
    after = [p - f + r for p, f, r in zip(padding, further, small, strict=True)]
    return {"output_padding": small, "padding": [*padding, *after]}


def _each(values: Sequence[int], ndim: int) -> list[int]:
    """One value for each dimension; a single one is for all."""
    return list(values) * ndim if len(values) == 1 else list(values)
