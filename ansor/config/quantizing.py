"""Quantisation to 8 bits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QuantizationConfig:
    """Calibration and its check (`ansor.quantization`)."""

    percentile: float = 99.99  # of the values of a tensor that lie in its range
    checked_samples: int = 32  # calibration samples on which the error is measured
    ranked_samples: int = 4  # samples on which operators are ordered by their errors
    negligible_error: float = 0.05  # share of the whole error below which a group is not split


QUANTIZATION = QuantizationConfig()
