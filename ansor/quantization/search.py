"""One quantisation from the arguments to the result."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from ansor.config import QUANTIZATION
from ansor.errors import AnsorError, UnsupportedError
from ansor.quantization.budget import (
    Attempt,
    by_sensitivity,
    normalised_square_error,
    within_budget,
)
from ansor.quantization.quantizer import Quantizer, quantised_nodes, run
from ansor.quantization.request import Request
from ansor.quantization.samples import is_by_name, read_samples
from ansor.quantization.source_model import declared_inputs, float_model
from ansor.targets.cpu.low_precision import prefers_narrow_weights
from ansor.targets.target import NATIVE, resolve_target


def quantized_by_request(request: Request) -> Attempt:
    """The quantised model for a user's settings.

    Raises:
        ArgumentError, UnsupportedError: as `quantize`.
    """
    calibration = request.calibration
    if not is_by_name(calibration):
        calibration = list(calibration)
    source = float_model(request.model, _examples(request.example_inputs, calibration))
    samples = read_samples(calibration, declared_inputs(source))
    with tempfile.TemporaryDirectory(prefix="ansor-quantize-") as folder:
        settings = request.method, request.per_channel, _reduces_range(request)
        quantizer = Quantizer(Path(folder), samples, *settings)
        try:
            return _searched(quantizer, source, request)
        except AnsorError:
            raise
        except Exception as error:  # ONNX Runtime raises errors of many unrelated kinds
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnsupportedError(
                f"ONNX Runtime cannot quantise the model: {reason}",
                "see whether ONNX Runtime runs the model, and what its message names",
            ) from error


def _reduces_range(request: Request) -> bool:
    """Whether weights have 7 bits: as the user says, or as suits this machine."""
    if request.reduce_range is not None:
        return request.reduce_range
    return prefers_narrow_weights(resolve_target(NATIVE))


def _examples(example_inputs: object, calibration: Any) -> object:
    """The arguments of a PyTorch module: given, or the first sample."""
    if example_inputs is not None or is_by_name(calibration) or not calibration:
        return example_inputs
    return calibration[0]


def _searched(quantizer: Quantizer, source: Any, request: Request) -> Attempt:
    quantizer.prepare(source)
    prepared = onnx.load(quantizer.float_path)
    metric = normalised_square_error if request.metric is None else request.metric

    def attempt(excluded: Sequence[str], count: int = QUANTIZATION.checked_samples) -> Attempt:
        model, samples = quantizer.quantized(excluded), quantizer.samples[:count]
        error = metric(run(prepared, samples), run(model, samples))
        return Attempt(model, float(error), tuple(excluded))

    def ranked(first: Attempt) -> Sequence[str]:
        names = quantised_nodes(first.model)

        def error_of(group: Sequence[str]) -> float:
            others = [name for name in names if name not in group]
            return attempt(others, QUANTIZATION.ranked_samples).error

        return by_sensitivity(names, error_of, first.error * QUANTIZATION.negligible_error)

    return within_budget(attempt, ranked, request.max_error)
