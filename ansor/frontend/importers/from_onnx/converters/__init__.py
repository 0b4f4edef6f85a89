"""Converters of ONNX's operators: a table by kind in each file, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.frontend.importers.from_onnx.converters import (
    activation,
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

CONVERTERS: Mapping[str, Converter] = {
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
