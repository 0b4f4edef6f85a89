"""The calls of `onnxruntime.quantization`.

Activations are `uint8`, and weights are symmetric `int8`: what its documentation advises on x86. It
advises `reduce_range` too where a processor lacks VNNI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from ansor.config import QUANTIZATION
from ansor.quantization.quiet import quiet
from ansor.quantization.samples import Array, Sample

METHODS = {
    "minmax": CalibrationMethod.MinMax,
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
}
_FLOAT, _CACHE, _QDQ = "float.onnx", "ranges.json", "qdq.onnx"


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    """Gives out samples one after the other."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = iter(samples)

    def get_next(self) -> Any:
        """The next sample; None at the end."""
        return next(self._samples, None)


@dataclass(frozen=True)
class Quantizer:
    """Quantises one model, as often as operators are left out.

    Attributes:
        folder: for temporary files; the ranges of tensors are calibrated once and kept there.
        method: a key of `METHODS`.
        per_channel: weights have a scale for each channel.
        reduce_range: weights have 7 bits.
    """

    folder: Path
    samples: Sequence[Sample]
    method: str
    per_channel: bool
    reduce_range: bool

    @property
    def float_path(self) -> Path:
        """The prepared float model."""
        return self.folder / _FLOAT

    def prepare(self, model: Any) -> None:
        """Infers shapes, folds constants and batch norms, and stores the float model."""
        with quiet():
            quant_pre_process(model, str(self.float_path))

    def quantized(self, excluded: Sequence[str]) -> Any:
        """The model in the format QDQ; the nodes with these names stay in float32."""
        with quiet():
            quantize_static(
                self.float_path,
                self.folder / _QDQ,
                _Reader(self.samples),
                quant_format=QuantFormat.QDQ,
                per_channel=self.per_channel,
                reduce_range=self.reduce_range,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=list(excluded),
                calibrate_method=METHODS[self.method],
                extra_options={"CalibPercentile": QUANTIZATION.percentile},
                calibration_cache_path=self.folder / _CACHE,
            )
        return onnx.load(self.folder / _QDQ)


def quantised_nodes(model: Any) -> list[str]:
    """Names of the nodes that read or make a quantised tensor."""
    dequantised = {n.output[0] for n in model.graph.node if n.op_type == "DequantizeLinear"}
    quantised = {n.input[0] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    return [
        node.name
        for node in model.graph.node
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear")
        and (dequantised.intersection(node.input) or quantised.intersection(node.output))
    ]


def run(model: Any, samples: Sequence[Sample]) -> list[list[Array]]:
    """The outputs for each sample, of the operators as the model has them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Its integer kernels saturate on processors without VNNI; the conversions as written do not.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [list(session.run(None, dict(sample))) for sample in samples]
