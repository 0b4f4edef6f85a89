"""Names, shapes and dtypes of a network's inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax, tirx

from ansor.errors import UnsupportedError

DTYPES = frozenset(
    (
        *("bfloat16", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "bool"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
)


@dataclass(frozen=True)
class InputSpec:
    """One input of a network; the shape is static."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def entry_of(mod: tvm.IRModule) -> str:
    """Name of the module's only Relax function.

    Raises:
        UnsupportedError: none, or several.
    """
    names = [v.name_hint for v, f in mod.functions.items() if isinstance(f, relax.Function)]
    if len(names) != 1:
        found = ", ".join(sorted(names)) or "none"
        raise UnsupportedError(f"the module must hold exactly one Relax function; found: {found}")
    return str(names[0])


def input_specs(function: relax.Function) -> tuple[InputSpec, ...]:
    """The function's parameters.

    Raises:
        UnsupportedError: an input that is no tensor, has a dynamic shape or an unknown dtype.
    """
    return tuple(_input_spec(parameter) for parameter in function.params)


def _input_spec(parameter: Any) -> InputSpec:
    name = str(parameter.name)
    if not isinstance(parameter.ty, relax.TensorType):
        raise UnsupportedError(f"input {name!r} is not a tensor but {parameter.ty}")
    check_dtype(f"input {name!r}", str(parameter.ty.dtype))
    return InputSpec(name, _static_shape(name, parameter.ty), str(parameter.ty.dtype))


def _static_shape(name: str, ty: Any) -> tuple[int, ...]:
    if ty.shape is None:
        raise UnsupportedError(f"input {name!r} has no known shape; give every dimension a size")
    return tuple(static_extent(name, axis, extent) for axis, extent in enumerate(ty.shape))


def static_extent(name: str, axis: int, extent: Any) -> int:
    """The extent as an integer.

    Raises:
        UnsupportedError: it is symbolic; names input and dimension.
    """
    if not isinstance(extent, int | tirx.IntImm):
        raise UnsupportedError(
            f"input {name!r}: dimension {axis} is dynamic ({extent}); fix its size"
        )
    return int(extent)


def check_dtype(what: str, dtype: str, besides: frozenset[str] = frozenset()) -> None:
    """Raises UnsupportedError unless the dtype is one that networks may use, `besides` excepted."""
    supported = DTYPES - besides
    if dtype not in supported:
        known = ", ".join(sorted(supported))
        raise UnsupportedError(f"{what} has dtype {dtype}; supported are {known}")
