"""Products of half precision are added up in float32, as on tensor cores and in cuDNN by
default."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ansor.frontend.rewrite import Lookup, op_name, rewrite_calls

_HALVES = frozenset(("float16", "bfloat16"))
_CONVOLUTIONS = {
    "relax.nn.conv1d": relax.op.nn.conv1d,
    "relax.nn.conv2d": relax.op.nn.conv2d,
    "relax.nn.conv3d": relax.op.nn.conv3d,
}
_TOTAL = "float32"


def with_wide_sums(mod: tvm.IRModule) -> tvm.IRModule:
    """Convolutions and products of matrices in half precision get float32 results, which are then
    rounded. Sums in half precision would lose digits with every addition."""
    return rewrite_calls(mod, _widened)


def _widened(call: Any, _: Lookup) -> Any:
    name = op_name(call)
    if name not in _CONVOLUTIONS and name != "relax.matmul":
        return call
    dtypes = {str(expr.ty.dtype) for expr in (call, *call.args)}
    if len(dtypes) > 1 or not dtypes <= _HALVES:
        return call
    if name == "relax.matmul":
        wide = relax.op.matmul(*call.args, out_dtype=_TOTAL)
    else:
        wide = _CONVOLUTIONS[name](*call.args, **_settings(call.attrs))
    return relax.op.astype(wide, dtypes.pop())


def _settings(attrs: Any) -> dict[str, Any]:
    """The attributes of a convolution with a wide result."""
    lists = {key: list(getattr(attrs, key)) for key in ("strides", "padding", "dilation")}
    layouts = {key: getattr(attrs, key) for key in ("data_layout", "kernel_layout", "out_layout")}
    return {**lists, **layouts, "groups": attrs.groups, "out_dtype": _TOTAL}
