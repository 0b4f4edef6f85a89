"""The distinct functions of an optimised network, each with the number of its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import GenericConst

from ansor.dag.from_tir.narrow import is_narrow, narrow_parameters, with_narrow
from ansor.frontend.rewrite import op_name
from ansor.frontend.signature import entry_of


@dataclass(frozen=True, eq=False)
class ExtractedFunction:
    """A PrimFunc of a network.

    `weight` is the number of calls; `constants` lists the parameters (by position) that are
    weights in every call. `func` carries the global symbol "main".
    """

    name: str
    func: tirx.PrimFunc
    weight: int
    constants: tuple[int, ...]


def extract_functions(mod: tvm.IRModule) -> list[ExtractedFunction]:
    """The functions that the network calls, in the order of their first call."""
    calls = list(tir_calls(mod))
    counts = Counter(call.args[0].name_hint for call in calls)
    return [_extracted(mod, calls, name, weight) for name, weight in counts.items()]


def tir_calls(mod: tvm.IRModule) -> Iterator[Any]:
    """The `call_tir`s of the module's Relax function, in order of execution."""
    for block in mod[entry_of(mod)].body.blocks:
        for binding in block.bindings:
            if op_name(binding.value) == "relax.call_tir":
                yield binding.value


def _extracted(mod: tvm.IRModule, calls: list[Any], name: str, weight: int) -> ExtractedFunction:
    arguments = [call.args[1].fields for call in calls if call.args[0].name_hint == name]
    constants = tuple(
        position
        for position, values in enumerate(zip(*arguments, strict=True))
        if all(isinstance(value, GenericConst) for value in values)
    )
    func = mod[name].with_attr("global_symbol", "main")  # so that it can be compiled alone
    func = with_narrow(func, _narrow(func, arguments))
    return ExtractedFunction(str(name), func, weight, constants)


def _narrow(func: Any, arguments: list[Any]) -> set[int]:
    """Positions of the parameters that are narrow in every call, by their values if these are
    known, else by the function's own promise."""
    declared = narrow_parameters(func)
    return {
        position
        for position, values in enumerate(zip(*arguments, strict=True))
        if str(func.params[position].dtype) == "int8"
        and all(_is_narrow(value, position in declared) for value in values)
    }


def _is_narrow(argument: Any, is_declared: bool) -> bool:
    is_known = isinstance(argument, GenericConst)
    return is_narrow(argument.value.numpy()) if is_known else is_declared
