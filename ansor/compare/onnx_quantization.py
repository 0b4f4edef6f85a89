"""The exported network in 8-bit integers, by ONNX Runtime's own tools and advice for x86."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from ansor.compare.case import Case, inputs, network
from ansor.config import COMPARE


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Hands out inputs by name, one after the other."""

    def __init__(self, samples: Iterable[dict[str, Any]]) -> None:
        self._samples = iter(samples)

    def get_next(self) -> dict[str, Any] | None:
        """The next inputs; None after the last."""
        return next(self._samples, None)


def quantize_onnx(case: Case) -> None:
    """Writes the case's network with pairs of QuantizeLinear and DequantizeLinear.

    Activations are uint8 in the ranges that random inputs take, weights are int8 per channel.
    """
    prepared = case.file("model.prepared.onnx")
    quant_pre_process(str(case.onnx), str(prepared))
    model = network(case)
    seeds = range(1, COMPARE.calibration_samples + 1)  # 0 is that of the comparison
    names = [name for name, _ in model.inputs]
    samples = (dict(zip(names, inputs(model, seed), strict=True)) for seed in seeds)
    quantize_static(
        str(prepared),
        str(case.quantized),
        _Samples(samples),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
