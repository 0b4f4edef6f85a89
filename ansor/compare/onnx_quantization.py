"""The exported network in 8-bit integers, as ONNX Runtime's tools make it."""

from __future__ import annotations

import onnx

from ansor.compare.case import Case, inputs, network
from ansor.config import COMPARE
from ansor.quantization.quantize import quantize


def quantize_onnx(case: Case) -> None:
    """Writes the case's network with pairs of QuantizeLinear and DequantizeLinear.

    Activations are uint8 in the ranges that random inputs reach, weights are int8 per channel.
    """
    model = network(case)
    seeds = range(1, COMPARE.calibration_samples + 1)  # 0 is that of the comparison
    samples = [inputs(model, seed) for seed in seeds]
    onnx.save(quantize(str(case.onnx), samples, method="minmax"), case.quantized)
