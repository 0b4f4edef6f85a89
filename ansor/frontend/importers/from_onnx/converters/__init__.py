"""Converters of ONNX's operators: a table by kind in each file, and all of them by domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansor.frontend.importers.from_onnx.converters import (
    activation,
    contributed,
    convolution,
    create,
    elementwise,
    indexing,
    integer_products,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    sampling,
    shape,
    signal,
)
from ansor.frontend.importers.from_onnx.converters.context import Converter

_OWN: Mapping[str, Converter] = {
    **activation.CONVERTERS,
    **convolution.CONVERTERS,
    **create.CONVERTERS,
    **elementwise.CONVERTERS,
    **indexing.CONVERTERS,
    **integer_products.CONVERTERS,
    **linear.CONVERTERS,
    **normalization.CONVERTERS,
    **pooling.CONVERTERS,
    **quantization.CONVERTERS,
    **recurrent.CONVERTERS,
    **reduction.CONVERTERS,
    **resize.CONVERTERS,
    **sampling.CONVERTERS,
    **shape.CONVERTERS,
    **signal.CONVERTERS,
}

_DOMAINS: Mapping[str, Mapping[str, Converter]] = {
    **dict.fromkeys(("", "ai.onnx", "ai.onnx.preview"), _OWN),
    contributed.DOMAIN: contributed.CONVERTERS,
}


def converter_of(node: Any) -> Converter | None:
    """The converter of a node's operator; None if there is none."""
    return _DOMAINS.get(node.domain, {}).get(node.op_type)
