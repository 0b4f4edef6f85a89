"""Operators that ONNX defines by others: their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper

from ansor.frontend.rewrite import static_shape


def body_of(node: Any, values: Sequence[Any], version: int) -> Any:
    """The `onnx.FunctionProto` of an operator; None if ONNX has none for it.

    Args:
        node: calls it.
        values: its operands: arrays, expressions, None.
        version: of ONNX's operator set.
    """
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        types = [_type_of(value) for value in values]
        since = max(
            (v for v in schema.context_dependent_function_opset_versions if v <= version),
            default=schema.since_version,
        )
        data = schema.get_context_dependent_function_with_opset_version(
            since, node.SerializeToString(), types
        )
    elif schema.has_function:
        since = max(
            (v for v in schema.function_opset_versions if v <= version),
            default=schema.since_version,
        )
        data = schema.get_function_with_opset_version(since)
    else:
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _type_of(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, np.ndarray):
        code = helper.np_dtype_to_tensor_dtype(value.dtype)
        return bytes(helper.make_tensor_type_proto(code, value.shape).SerializeToString())
    code = helper.np_dtype_to_tensor_dtype(np.dtype(str(value.ty.dtype)))
    return bytes(helper.make_tensor_type_proto(code, static_shape(value)).SerializeToString())


def with_attributes(node: Any, given: Mapping[str, Any]) -> Any:
    """A node of a body, its references to the function's attributes replaced."""
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            value = onnx.AttributeProto()
            value.CopyFrom(given[attribute.ref_attr_name])
            value.name = attribute.name
            made.attribute.append(value)
    return made


def given_attributes(node: Any, function: Any, version: int) -> dict[str, Any]:
    """The attributes of a call of a function by name, defaults among them."""
    found = {attribute.name: attribute for attribute in function.attribute_proto}
    try:
        schema = defs.get_schema(node.op_type, version, node.domain)
        defaults = {
            n: a.default_value for n, a in schema.attributes.items() if a.default_value.type
        }
        found.update(defaults)
    except defs.SchemaError:  # a function of the model, which has no schema
        pass
    found.update({attribute.name: attribute for attribute in node.attribute})
    return found
