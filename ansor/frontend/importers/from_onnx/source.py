"""An ONNX model as the reference for its import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansor.errors import UnsupportedError
from ansor.frontend.importers.from_onnx.converters.contributed import DOMAIN
from ansor.frontend.importers.from_onnx.inputs import dtype_of_code
from ansor.frontend.importers.source import Array, NodeCase
from ansor.frontend.signature import InputSpec


@dataclass(frozen=True, eq=False)
class OnnxSource:
    """See `SourceModel`.

    Attributes:
        model: the whole model, with static shapes.
        import_model: imports a model of static shapes, for nodes alone.
        examples: arrays that the user gave; None without.
    """

    model: Any
    import_model: Callable[[Any], tvm.IRModule]
    examples: tuple[Array, ...] | None = None

    @property
    def framework(self) -> str:
        """Name of the runtime."""
        return "ONNX Runtime" if isinstance(self._session, _Runtime) else "ONNX's reference"

    @cached_property
    def inputs(self) -> tuple[InputSpec, ...]:
        """The inputs that are no weights."""
        given = {tensor.name for tensor in self.model.graph.initializer}
        return tuple(_spec(value) for value in self.model.graph.input if value.name not in given)

    @cached_property
    def _session(self) -> Any:
        return _runner(self.model)

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """See `SourceModel`."""
        return self._session.run(self._feed(arrays))  # type: ignore[no-any-return]

    def _feed(self, arrays: Sequence[Array]) -> dict[str, Array]:
        return {spec.name: array for spec, array in zip(self.inputs, arrays, strict=True)}

    def nodes(self, arrays: Sequence[Array]) -> Iterator[NodeCase]:
        """See `SourceModel`."""
        values = self._values(arrays)
        weights = {tensor.name: tensor for tensor in self.model.graph.initializer}
        known: set[Any] = set()
        for node in self.model.graph.node:
            results = [name for name in node.output if name]
            operands = [name for name in dict.fromkeys(node.input) if name]
            if not all(name in values or name in weights for name in (*results, *operands)):
                continue  # the runtime does not tell this value
            key = _key(node, values, weights)
            if key not in known:
                known.add(key)
                yield self._case(node, operands, results, values, weights)

    def _values(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Every value of a run, by name."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        names = [name for node in model.graph.node for name in node.output if name]
        given = {value.name for value in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in given)
        outputs = [value.name for value in model.graph.output]
        feed = self._feed(arrays)
        return {**feed, **dict(zip(outputs, _runner(model).run(feed), strict=True))}

    def _case(
        self, node: Any, operands: list[str], results: list[str], values: Any, weights: Any
    ) -> NodeCase:
        inputs = [name for name in operands if name in values]
        constants = [weights[name] for name in operands if name not in values]
        declared = [_declared(name, values[name]) for name in inputs]
        returned = [_declared(name, values[name]) for name in results]
        graph = helper.make_graph([node], "alone", declared, returned, constants)
        alone = helper.make_model(
            graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version
        )
        return NodeCase(
            operator=str(node.op_type),
            place=f"node {node.name!r}" if node.name else f"the node that makes {results[0]!r}",
            inputs=tuple(values[name] for name in inputs),
            expected=tuple(values[name] for name in results),
            import_alone=lambda: self.import_model(alone),
        )


class _Runtime:
    """Runs a model with ONNX Runtime.

    Raises:
        Exception: ONNX Runtime does not know the model's operators.
    """

    def __init__(self, model: Any) -> None:
        import onnxruntime  # optional

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # its warnings are irrelevant to the user
        # The import is not compared with fused and reordered arithmetic.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def run(self, feed: dict[str, Array]) -> tuple[Array, ...]:
        return tuple(self._session.run(None, feed))


class _Reference:
    """Runs a model with ONNX's reference implementation, which is slow but knows all operators."""

    def __init__(self, model: Any) -> None:
        self._evaluator = ReferenceEvaluator(model)

    def run(self, feed: dict[str, Array]) -> tuple[Array, ...]:
        return tuple(np.asarray(value) for value in self._evaluator.run(None, feed))


def _runner(model: Any) -> Any:
    if find_spec("onnxruntime") is not None:
        try:
            return _Runtime(model)
        except Exception:  # an unsupported operator or version: the reference may support it
            pass
    contributed = [node for node in model.graph.node if node.domain == DOMAIN]
    if contributed:
        raise UnsupportedError(
            f"operator {contributed[0].op_type} of {DOMAIN} runs in ONNX Runtime only",
            "pip install onnxruntime, or turn the comparison with the original model off",
        )
    return _Reference(model)


def _spec(value: Any) -> InputSpec:
    ty = value.type.tensor_type
    shape = tuple(int(dim.dim_value) for dim in ty.shape.dim)
    return InputSpec(value.name, shape, dtype_of_code(ty.elem_type))


def _declared(name: str, value: Any) -> Any:
    array = np.asarray(value)
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, dtype, array.shape)


def _key(node: Any, values: Any, weights: Any) -> Any:
    """The key of a node's code: operator, attributes, shapes, constants' values."""
    attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
    operands = [
        (np.shape(values[name]), str(np.asarray(values[name]).dtype))
        if name in values
        else _constant_key(weights[name])
        for name in node.input
        if name
    ]
    return node.op_type, node.domain, tuple(attributes), tuple(operands)


def _constant_key(tensor: Any) -> Any:
    small = np.prod(tensor.dims) <= 64
    values = numpy_helper.to_array(tensor).tobytes() if small else b""
    return tuple(tensor.dims), tensor.data_type, values
