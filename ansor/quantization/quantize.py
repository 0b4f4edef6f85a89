"""`quantize`: a float model and samples in, a model in 8 bits out."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ansor.errors import ArgumentError
from ansor.quantization.request import Request

if TYPE_CHECKING:
    from ansor.quantization.budget import Attempt, Metric

METHODS = ("entropy", "minmax", "percentile")


def quantize(
    model: object,
    calibration: object,
    *,
    example_inputs: object = None,
    method: str = "entropy",
    per_channel: bool = True,
    max_error: float | None = None,
    metric: Metric | None = None,
    reduce_range: bool | None = None,
) -> Any:
    """Quantises a network to 8 bits with `onnxruntime.quantization`.

    Activations are `uint8`, weights symmetric `int8`, and sums `int32`.

    Args:
        model: an ONNX model, a `torch.nn.Module` or an `ExportedProgram`, in float32.
        calibration: samples of the inputs. The path of a .npz file or a mapping holds an array of
            all samples for each input, along its first axis. A sequence holds samples: an array,
            arrays in the order of the inputs, or arrays by name.
        example_inputs: arguments of a `torch.nn.Module`; without them, the first sample of a
            sequence.
        method: how ranges are chosen: "entropy", "minmax" or "percentile".
        per_channel: a scale for each channel of the weights, instead of one for each tensor.
        max_error: bound of the error against the float model. The most sensitive operators go back
            to float32 until it holds. Without a bound all are quantised.
        metric: the error of outputs `(expected, found)`, each a list of arrays for each sample;
            by default the mean square error over the mean square, of the worst output.
        reduce_range: weights have 7 bits, which x86 without VNNI multiplies faster than 8. None for
            what suits this machine.

    Returns:
        an `onnx.ModelProto` in the format QDQ, which `auto_schedule` takes.

    Raises:
        ArgumentError: an argument is wrong, ONNX Runtime is missing, or no assignment meets the
            bound.
        UnsupportedError: PyTorch or ONNX Runtime cannot process the model.
    """
    request = Request(
        model, calibration, example_inputs, method, per_channel, max_error, metric, reduce_range
    )
    return quantized(request).model


def quantized(request: Request) -> Attempt:
    """As `quantize`, with the error and the nodes in float32 beside the model."""
    method, max_error, reduce_range = request.method, request.max_error, request.reduce_range
    if method not in METHODS:
        raise ArgumentError("method", method, f"give one of {', '.join(METHODS)}")
    if max_error is not None and not (np.isfinite(max_error) and max_error > 0):
        raise ArgumentError("max_error", max_error, "give a positive number")
    if reduce_range is not None and not isinstance(reduce_range, bool):
        raise ArgumentError("reduce_range", reduce_range, "give True, False or None")
    missing = [name for name in ("onnx", "onnxruntime", "sympy") if find_spec(name) is None]
    if missing:
        remedy = f"quantisation needs {' and '.join(missing)}: pip install 'ansor[quantize]'"
        raise ArgumentError("method", method, remedy)
    # ONNX Runtime is optional: its door opens only here.
    from ansor.quantization.search import quantized_by_request

    return quantized_by_request(request)
