"""Converters by operator: arguments bound by name, results checked against PyTorch's own.

A converter is a function `(context, operands...) -> expression or expressions` whose parameters
have the names of the schema (`self` is `x`). An argument that it has no parameter for must
have its default; else the operator is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from tvm import relax

from ansor.config import IMPORTS
from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import dtype_of, shape_of
from ansor.frontend.importers.from_torch.converters.context import Context, dtype_from_torch
from ansor.frontend.rewrite import constant

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}  # by the operator's name with its overload, "add.Tensor"
# Where a tensor lies and how its memory is arranged does not change its values; its dtype is known
# from PyTorch's description of it.
WITHOUT_EFFECT = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "dtype", "out_dtype")
)
GETITEM = "getitem"
# Their checks of dtypes and shapes passed during capture, and pass for every call.
CHECKS = frozenset(("_assert_tensor_metadata.default",))


def converts(*operators: str) -> Callable[[Function], Function]:
    """Registers a function for operators, named like `add.Tensor`."""

    def register(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(operators, function))
        return function

    return register


def convert(node: torch.fx.Node, translator: Any) -> Any:
    """The node's result: an expression, or a list of them.

    Raises:
        OperatorError: there is no converter, an argument is not supported, or the conversion
            would not have PyTorch's shape and dtype.
    """
    if node.target.__name__ == GETITEM:
        return _part(node, translator)
    if node.target.__name__ in CHECKS:
        return None
    function = FUNCTIONS.get(node.target.__name__)
    context = Context(translator.block_builder, node, _results(node))
    found = _without_data(context)
    if found is None:
        if function is None:
            raise OperatorError("there is no converter for it")
        arguments = _bound(node, translator)
        found = function(context, **_for_function(function, arguments, node))
    several = isinstance(node.meta["val"], list | tuple)
    parts = _checked(context, found if isinstance(found, list | tuple) else [found])
    return parts if several else parts[0]


def _part(node: torch.fx.Node, translator: Any) -> Any:
    source, position = node.args
    if KNOWN in source.meta:
        node.meta[KNOWN] = source.meta[KNOWN][position]
    return translator.env[source][position]


def _results(node: torch.fx.Node) -> tuple[torch.Tensor, ...]:
    """Descriptions of the node's results, all of them tensors of known shapes."""
    leaves = [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if leaf is not None]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise OperatorError("its result is a number that depends on the data")
        if leaf.layout is not torch.strided:
            raise OperatorError(f"tensors of layout {leaf.layout} are not supported")
        if not all(isinstance(extent, int) for extent in leaf.shape):
            raise OperatorError("the shape of its result depends on the data")
        dtype_from_torch(leaf.dtype)
    return tuple(leaves)


def _bound(node: torch.fx.Node, translator: Any) -> dict[str, Any]:
    """The operator's arguments by the names of its schema, defaults included."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        raise OperatorError("there is no converter for it")
    given = dict(zip([a.name for a in schema.arguments], node.args, strict=False))
    given.update(node.kwargs)
    named = {a.name: given.get(a.name, a.default_value) for a in schema.arguments}
    return {name: translator.operands(value) for name, value in named.items()}


def _for_function(
    function: Function, arguments: dict[str, Any], node: torch.fx.Node
) -> dict[str, Any]:
    """The arguments that the function takes."""
    parameters = list(inspect.signature(function).parameters)[1:]
    defaults = {a.name: a.default_value for a in node.target._schema.arguments}
    taken = {}
    for name, value in arguments.items():
        own = "x" if name in ("self", "input") else name
        if own in parameters:
            taken[own] = value
        elif name not in WITHOUT_EFFECT and not _is_default(value, defaults[name]):
            raise OperatorError(f"its argument {name} is not supported")
    return taken


def _is_default(value: Any, default: Any) -> bool:
    return value is None or (not isinstance(value, relax.Expr) and value == default)


def _without_data(context: Context) -> list[Any] | None:
    """Results that hold no elements, or that depend on no element of any input or weight."""
    node = context.node
    if context.results and all(result.numel() == 0 for result in context.results):
        return [_filled(result) for result in context.results]
    if node.target.__name__ in FILLS:
        return None
    values = {operand: _known(operand) for operand in node.all_input_nodes}
    if any(value is None for value in values.values()):
        return None
    return _evaluated(context, values)


# Never constants: fills gain nothing, and the others would have undefined elements.
FILLS = frozenset(
    ("full.default", "empty.memory_format", "empty_strided.default", "empty_permuted.default")
)
KNOWN = "ansor_known"  # in a node's `meta`: its results, where they depend on no input


def _known(node: torch.fx.Node) -> Any:
    """The node's results in a row, if they do not depend on the inputs' or weights' elements."""
    if KNOWN in node.meta:
        return node.meta[KNOWN]
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and value.numel() == 0:
        return torch.zeros(tuple(value.shape), dtype=value.dtype)
    if node.target == torch.ops.aten.full.default and value.numel() <= IMPORTS.max_constant:
        return torch.full(tuple(value.shape), node.args[1], dtype=value.dtype)
    return None


def _evaluated(context: Context, values: dict[torch.fx.Node, Any]) -> list[Any] | None:
    """PyTorch's result for known operands; None if it is a large tensor."""
    node = context.node
    if sum(result.numel() for result in context.results) > IMPORTS.max_constant:
        return None
    args, kwargs = pytree.tree_map(
        lambda leaf: values[leaf] if isinstance(leaf, torch.fx.Node) else leaf,
        (node.args, dict(node.kwargs)),
    )
    found = node.target(*args, **kwargs)
    node.meta[KNOWN] = found
    tensors = [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]
    return [constant(_array(tensor), dtype_from_torch(tensor.dtype)) for tensor in tensors]


def _array(tensor: torch.Tensor) -> Any:
    """The values; those of bfloat16 are exact in float32."""
    dense = tensor.detach().contiguous()
    return (dense.float() if dense.dtype == torch.bfloat16 else dense).numpy()


def _filled(result: torch.Tensor) -> Any:
    return constant(np.zeros(tuple(result.shape)), dtype_from_torch(result.dtype))


def _checked(context: Context, found: Sequence[Any]) -> list[Any]:
    """The results bound to variables, if they have the shapes and dtypes of PyTorch's."""
    if len(found) != len(context.results):
        raise OperatorError(f"{len(found)} results instead of {len(context.results)}")
    parts = []
    for expr, expected in zip(found, context.results, strict=True):
        bound = expr if isinstance(expr, relax.Var) else context.emit(expr)
        _check(bound, expected)
        parts.append(bound)
    return parts


def _check(expr: Any, expected: torch.Tensor) -> None:
    mine = (shape_of(expr), dtype_of(expr))
    its = (tuple(expected.shape), dtype_from_torch(expected.dtype))
    if mine != its:
        raise OperatorError(
            f"the conversion has shape {mine[0]} and dtype {mine[1]} instead of {its[0]}, {its[1]}"
        )
