"""Translates a graph of ONNX nodes to a Relax function, node by node.

A node whose operands are known is evaluated. The converter of its operator converts any other node,
or the body that ONNX defines for the operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from tvm import relax
from tvm.ir import GenericConst

from ansor.config import IMPORTS
from ansor.errors import OperatorError, UnsupportedError
from ansor.frontend.importers.conversion import supported_dtype
from ansor.frontend.importers.from_onnx.control import FLOW, control_flow
from ansor.frontend.importers.from_onnx.converters import converter_of
from ansor.frontend.importers.from_onnx.converters.context import Context, Converter
from ansor.frontend.importers.from_onnx.fold import folded
from ansor.frontend.importers.from_onnx.functions import body_of, given_attributes, with_attributes
from ansor.frontend.importers.from_onnx.inputs import dtype_of_code
from ansor.frontend.importers.from_onnx.integer_operands import check_integers
from ansor.frontend.rewrite import constant, static_shape

_RANDOM = (
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("Bernoulli", "Multinomial"),
)


def translate(model: Any) -> tvm.IRModule:
    """The model as a module of one function, "main".

    Args:
        model: an `onnx.ModelProto` of static shapes with all its weights.

    Raises:
        UnsupportedError: an operator, an attribute or a dtype, with the node.
    """
    graph = model.graph
    bb = relax.BlockBuilder()
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    params = {value.name: _parameter(value) for value in inputs}
    versions = {entry.domain or "": entry.version for entry in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", onnx.defs.onnx_opset_version()))
    values: dict[str, Any] = {**weights, **params}
    failure: UnsupportedError | None = None
    with bb.function("main", list(params.values())):
        with bb.dataflow():
            try:
                _Translation(bb, version).run(graph.node, values)
                result = _result([_expression(values[value.name]) for value in graph.output])
            except UnsupportedError as error:  # raised when the builder is closed, which warns else
                failure, result = error, constant(np.zeros((), np.float32))
            output = bb.emit_output(result)
        bb.emit_func_output(output)
    if failure:
        raise failure
    return bb.get()


def _result(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else relax.Tuple(results)


def _parameter(value: Any) -> relax.Var:
    ty = value.type.tensor_type
    shape = [int(dim.dim_value) for dim in ty.shape.dim]
    return relax.Var(value.name, relax.TensorType(shape, dtype_of_code(ty.elem_type)))


def _expression(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return constant(value, supported_dtype(str(value.dtype)))
    return value


class _Translation:
    """Converts nodes in order.

    Args:
        bb: where expressions are bound.
        version: of ONNX's operator set.
    """

    def __init__(self, bb: relax.BlockBuilder, version: int) -> None:
        self._bb, self._version = bb, version

    def run(self, nodes: Sequence[Any], values: dict[str, Any]) -> None:
        """Adds the results of nodes to the values, which are by name."""
        for node in nodes:
            with _named(node):
                results = self._results(node, values)
                used = zip(node.output, results, strict=False)
                values.update({name: _settled(value) for name, value in used if name})

    def _results(self, node: Any, values: dict[str, Any]) -> Sequence[Any]:
        _check_kind(node)
        operands = [values[name] if name else None for name in node.input]
        if node.op_type in FLOW:
            return control_flow(self._bb, self.run, node, operands, values)
        shape = _shape_node(node, operands)
        if shape is not None:
            return (shape,)
        if operands and all(v is None or isinstance(v, np.ndarray) for v in operands):
            found = folded(node, operands, self._version)
            if found:
                return found
        check_integers(node, operands, self._version)
        converter = converter_of(node)
        if converter is not None:
            return self._converted(node, operands, converter)
        return self._expanded(node, operands)

    def _converted(self, node: Any, operands: list[Any], converter: Converter) -> Sequence[Any]:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        context = Context(self._bb, node, self._version, tuple(operands), attributes)
        found = converter(context)
        listed = list(found) if isinstance(found, list | tuple) else [found]
        return [_bound(self._bb, value) for value in listed]

    def _expanded(self, node: Any, operands: list[Any]) -> Sequence[Any]:
        function = body_of(node, operands, self._version)
        if function is None:
            raise OperatorError(
                "this operator is not supported", "replace the operator in the model"
            )
        inner: dict[str, Any] = dict.fromkeys(function.input)
        inner.update(zip(function.input, operands, strict=False))
        given = given_attributes(node, function, self._version)
        nodes = [with_attributes(part, given) for part in function.node]
        own = [e.version for e in function.opset_import if e.domain in ("", "ai.onnx")]
        scope = _Translation(self._bb, own[0] if own else self._version)
        scope.run(nodes, inner)
        return [inner.get(name) for name in function.output]


def _check_kind(node: Any) -> None:
    if node.op_type in _RANDOM:
        raise OperatorError("it draws random numbers", "pass them as an input instead")


def _shape_node(node: Any, operands: list[Any]) -> Any:
    """The result of Shape and Size, which need no values."""
    if node.op_type not in ("Shape", "Size") or operands[0] is None:
        return None
    value = operands[0]
    shape = value.shape if isinstance(value, np.ndarray) else static_shape(value)
    if shape is None:
        return None
    if node.op_type == "Size":
        return np.array(np.prod(shape, dtype=np.int64))
    bounds = {a.name: a.i for a in node.attribute}
    return np.array(shape, np.int64)[bounds.get("start", 0) : bounds.get("end")]


def _bound(bb: relax.BlockBuilder, value: Any) -> Any:
    if isinstance(value, relax.Var | GenericConst | np.ndarray):
        return value
    return bb.emit(value)


def _settled(value: Any) -> Any:
    """Small constants and empty tensors as arrays, because later nodes may need their values."""
    if value is None or isinstance(value, np.ndarray):
        return value
    shape = static_shape(value)
    if shape is None:
        raise OperatorError(
            "the shape of its result depends on values", "replace the operator in the model"
        )
    if isinstance(value, GenericConst) and np.prod(shape, dtype=np.int64) <= IMPORTS.max_known:
        return value.value.numpy()
    if 0 in shape:
        return np.zeros(shape, str(value.ty.dtype))
    return value


@contextmanager
def _named(node: Any) -> Iterator[None]:
    """Names the node in errors; those of TVM become ours."""
    try:
        yield
    except _NodeError:  # a node of the body of this operator is named
        raise
    except UnsupportedError as error:
        reason = error.problem
        text = reason if reason.startswith("is ") else f"is not supported: {reason}"
        raise _NodeError(f"operator {place(node)} {text}", error.remedy) from error
    except Exception as error:  # TVM raises errors of many kinds
        lines = (str(error).strip() or type(error).__name__).splitlines()
        raise _NodeError(
            f"cannot import operator {place(node)}: {lines[0]}", "replace the operator in the model"
        ) from error


class _NodeError(UnsupportedError):
    """An error that names its node."""


def place(node: Any) -> str:
    """The node's operator and name, or its first result if it has no name."""
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    name = f"node {node.name!r}" if node.name else f"the node that makes {node.output[0]!r}"
    return f"{domain}{node.op_type} ({name})"
