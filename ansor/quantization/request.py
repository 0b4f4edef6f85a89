"""The arguments of a quantisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansor.quantization.budget import Metric


@dataclass(frozen=True)
class Request:
    """The arguments of `ansor.quantize`, see there."""

    model: object
    calibration: Any
    example_inputs: object = None
    method: str = "entropy"
    per_channel: bool = True
    max_error: float | None = None
    metric: Metric | None = None
    reduce_range: bool | None = None
