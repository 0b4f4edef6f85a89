"""Products of half precision are added up in float32, as tensor cores do it and cuDNN does by
default."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ansor.frontend.rewrite import Lookup, op_name, rewrite

_HALVES = ("float16", "bfloat16")
_CONVOLUTIONS = {
    "relax.nn.conv1d": relax.op.nn.conv1d,
    "relax.nn.conv2d": relax.op.nn.conv2d,
    "relax.nn.conv3d": relax.op.nn.conv3d,
}
_TOTAL = "float32"


def with_wide_sums(mod: tvm.IRModule) -> tvm.IRModule:
    """Convolutions and products of matrices in half precision have float32 results, which are
    rounded to what they were; sums in half precision lose digits with every addition."""
    return rewrite(mod, _widened)


def _widened(call: Any, _: Lookup) -> Any:
    name, dtype = op_name(call), str(getattr(call.ty, "dtype", ""))
    if dtype not in _HALVES or any(str(operand.ty.dtype) != dtype for operand in call.args[:2]):
        return call
    if name == "relax.matmul":
        return relax.op.astype(relax.op.matmul(*call.args, out_dtype=_TOTAL), dtype)
    if name in _CONVOLUTIONS:
        return relax.op.astype(_CONVOLUTIONS[name](*call.args, **_settings(call.attrs)), dtype)
    return call


def _settings(attrs: Any) -> dict[str, Any]:
    """Those of a convolution, with a wide result."""
    lists = {key: list(getattr(attrs, key)) for key in ("strides", "padding", "dilation")}
    layouts = {key: getattr(attrs, key) for key in ("data_layout", "kernel_layout", "out_layout")}
    return {**lists, **layouts, "groups": attrs.groups, "out_dtype": _TOTAL}
