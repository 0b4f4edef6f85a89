"""What lowered functions prefetch."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

from tvm import ir, tirx

from ansor.lowering.statements import collect

_READ, _WRITE = "ansor_fetch", "ansor_fetch_to_write"


def fetched(func: tirx.PrimFunc) -> list[Any]:
    """The buffer of each prefetching statement."""
    return [_load(node).source for node in collect(func.body, tirx.Evaluate) if _name(node)]


def addresses(
    func: tirx.PrimFunc, outer: dict[str, int], buffer: Any = None, to_write: bool = False
) -> set[int]:
    """Numbers of the prefetched elements for fixed values of the outermost loops.

    Args:
        outer: values of those loops, by name.
        buffer: that alone counts; all, if none is given.
        to_write: whether they are prefetched for writing.
    """
    found: set[int] = set()

    def walk(node: Any, loops: list[Any]) -> None:
        if isinstance(node, tirx.For):
            walk(node.body, [*loops, node])
        elif isinstance(node, tirx.SeqStmt):
            for child in node.seq:
                walk(child, loops)
        elif hasattr(node, "block"):
            walk(node.block.body, loops)
        elif isinstance(node, tirx.AttrStmt):
            walk(node.body, loops)
        elif isinstance(node, tirx.Evaluate) and _name(node) == (_WRITE if to_write else _READ):
            load = _load(node)
            if buffer is None or load.source.same_as(buffer):
                found.update(_values(str(load.indices[-1]), loops, outer))

    walk(func.body, [])
    return found


def _values(index: str, loops: list[Any], outer: dict[str, int]) -> set[int]:
    ranges = [
        [outer[x.loop_var.name]] if x.loop_var.name in outer else range(int(x.extent))
        for x in loops
    ]
    names = [x.loop_var.name for x in loops]
    scope = {"T": SimpleNamespace(int64=int, min=min)}
    code = compile(index, "index", "eval")
    return {eval(code, scope, dict(zip(names, v, strict=True))) for v in product(*ranges)}


def _name(node: Any) -> str | None:
    """Of the function for prefetches that a statement calls."""
    text = str(node)
    return next((name for name in (_READ, _WRITE) if f'"{name}"' in text), None)


def _load(node: Any) -> Any:
    (load,) = collect(node, ir.TensorLoad)
    return load
