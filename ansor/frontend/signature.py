"""Names, shapes and dtypes of a network's inputs."""

from __future__ import annotations

from collections.abc import Iterator
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
        raise UnsupportedError(
            f"the module must hold exactly one Relax function, and it holds {found}",
            "give one with a single function",
        )
    return str(names[0])


def input_specs(function: relax.Function) -> tuple[InputSpec, ...]:
    """The function's parameters.

    Raises:
        UnsupportedError: an input that is no tensor, has a dynamic shape or an unknown dtype.
    """
    return tuple(_input_spec(parameter) for parameter in function.params)


def output_specs(function: relax.Function) -> tuple[InputSpec, ...]:
    """The tensors that the function returns, in order, by the names "output0" ...

    Raises:
        UnsupportedError: an output that is no tensor, or has a dynamic shape.
    """
    return tuple(
        _spec("output", f"output{number}", ty)
        for number, ty in enumerate(_tensor_types(function.ret_ty))
    )


def _tensor_types(ty: Any) -> Iterator[Any]:
    """The parts of a type, which may be nested tuples."""
    if isinstance(ty, relax.TupleType):
        for field in ty.fields:
            yield from _tensor_types(field)
    else:
        yield ty


def _input_spec(parameter: Any) -> InputSpec:
    return _spec("input", str(parameter.name), parameter.ty)


def _spec(kind: str, name: str, ty: Any) -> InputSpec:
    what = f"{kind} {name!r}"
    if not isinstance(ty, relax.TensorType):
        raise UnsupportedError(f"{what} is not a tensor but {ty}", "give tensors")
    check_dtype(what, str(ty.dtype))
    if ty.shape is None:
        raise UnsupportedError(f"{what} has no known shape", "give every dimension a size")
    shape = tuple(static_extent(what, axis, extent) for axis, extent in enumerate(ty.shape))
    return InputSpec(name, shape, str(ty.dtype))


def static_extent(what: str, axis: int, extent: Any) -> int:
    """The extent as an integer.

    Args:
        what: the tensor, for the message.

    Raises:
        UnsupportedError: it is symbolic; names the tensor and the dimension.
    """
    if not isinstance(extent, int | tirx.IntImm):
        raise UnsupportedError(f"{what}: dimension {axis} is dynamic ({extent})", "set its size")
    return int(extent)


def check_dtype(what: str, dtype: str, besides: frozenset[str] = frozenset()) -> None:
    """Raises UnsupportedError unless the dtype is one that networks may use, `besides` excepted."""
    supported = DTYPES - besides
    if dtype not in supported:
        known = ", ".join(sorted(supported))
        raise UnsupportedError(f"{what} has dtype {dtype}", f"use one of {known}")
