"""``ansor quantize``: a float model to 8 bits, calibrated with samples of its inputs."""

from __future__ import annotations

from pathlib import Path

import click

from ansor.cli.choices import METHODS
from ansor.errors import ArgumentError


@click.command()
@click.argument("model")
@click.option(
    "--calibration",
    required=True,
    metavar="FILE",
    help="Samples: a .npz file with an array for each input, samples along the first axis.",
)
@click.option("--out", metavar="FILE", help="By default MODEL-int8.onnx, in the current folder.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="entropy",
    show_default=True,
    help="How samples give each tensor a range.",
)
@click.option(
    "--per-channel/--per-tensor", default=True, show_default=True, help="Scales of weights."
)
@click.option(
    "--reduce-range/--full-range",
    default=None,
    help="Weights of 7 bits, or of 8; by default 7 on x86 without VNNI.",
)
@click.option(
    "--max-error",
    type=float,
    metavar="X",
    help="Mean square error over mean square of the outputs; sensitive operators go back to "
    "float32 until it holds.",
)
def quantize(
    model: str,
    calibration: str,
    out: str | None,
    method: str,
    per_channel: bool,
    reduce_range: bool | None,
    max_error: float | None,
) -> None:
    """Quantises MODEL (.onnx or .pt2) with ONNX Runtime; `ansor tune` takes the result."""
    from ansor.cli.model_argument import parse_model
    from ansor.quantization.quantize import quantized
    from ansor.quantization.request import Request

    path = Path(out or f"{Path(model).stem}-int8.onnx")
    if not path.parent.is_dir():
        raise ArgumentError("out", str(path), "no such folder; make it first")
    request = Request(
        parse_model(model),
        calibration,
        method=method,
        per_channel=per_channel,
        max_error=max_error,
        reduce_range=reduce_range,
    )
    found = quantized(request)
    path.write_bytes(found.model.SerializeToString())
    click.echo(f"error: {found.error:.3g} of the mean square")
    click.echo(f"in float32: {', '.join(found.in_float) or 'nothing that can be quantised'}")
    click.echo(f"saved: {path}")
