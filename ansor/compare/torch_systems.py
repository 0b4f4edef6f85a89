"""PyTorch: eager, channels-last, compiled by Inductor; and the export to ONNX.

In bfloat16 PyTorch's autocast chooses which operators compute in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch._inductor.config

from ansor.compare.case import REFERENCE, Case, input_rank, inputs, network
from ansor.models.torch_twin import torch_twin


def eager(case: Case) -> Any:
    """The network as PyTorch runs it by default."""
    torch.set_num_threads(case.threads)
    return _call(_twin(case))


def channels_last(case: Case) -> Any:
    """The network with weights and activations of images in NHWC, of videos in NDHWC."""
    torch.set_num_threads(case.threads)
    layout = _layout(case)
    return _laid_out(_twin(case).to(memory_format=layout), layout)


def inductor(case: Case) -> Any:
    """`torch.compile` with weights frozen into the program."""
    return _call(_compiled(case, _twin(case)))


def _compiled(case: Case, model: torch.nn.Module) -> Any:
    torch.set_num_threads(case.threads)
    settings = torch._inductor.config
    settings.freezing = True
    settings.compile_threads = 1  # its pool of compiling processes disturbs the clock
    mode = "default" if case.device == "cpu" else "max-autotune"
    return torch.compile(model, mode=mode)


def eager_bfloat16(case: Case) -> Any:
    """`eager` under autocast."""
    return _in_bfloat16(eager(case))


def channels_last_bfloat16(case: Case) -> Any:
    """`channels_last` under autocast."""
    return _in_bfloat16(channels_last(case))


def inductor_bfloat16(case: Case) -> Any:
    """`inductor` under autocast, images and weights channels last."""
    layout = _layout(case)
    model = _compiled(case, _twin(case).to(memory_format=layout))
    return _in_bfloat16(_laid_out(model, layout))


def _layout(case: Case) -> torch.memory_format:
    """Channels last for images and videos."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return formats.get(input_rank(case), torch.contiguous_format)


def _laid_out(model: Any, layout: torch.memory_format) -> Any:
    """A network as a function of inputs that are brought into a layout."""
    run = _call(model)
    return lambda x: run(_tensor(x).contiguous(memory_format=layout))


def _in_bfloat16(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A network under autocast from now on: weights are converted once and kept."""
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    return run


def export_onnx(case: Case) -> None:
    """Writes the network to the case's ONNX file, and its output in float32."""
    built = network(case)
    example = tuple(torch.from_numpy(array) for array in inputs(built))
    np.save(case.output(REFERENCE), eager(case)(*inputs(built)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its own parts
        torch.onnx.export(_twin(case), example, str(case.onnx), dynamo=True, verbose=False)


def _twin(case: Case) -> torch.nn.Module:
    built = network(case)
    torch.backends.cuda.matmul.allow_tf32 = case.tf32  # all systems compute the same
    torch.backends.cudnn.allow_tf32 = case.tf32
    torch.backends.cudnn.benchmark = True
    return torch_twin(built.name, built.params).to(case.device)


def _tensor(x: Any) -> Any:
    return x if isinstance(x, torch.Tensor) else torch.from_numpy(x)


def _call(model: Any) -> Any:
    def run(x: Any) -> Any:
        with torch.inference_mode():
            result = model(_tensor(x))
        if result.is_cuda:
            return result
        return (result.float() if result.dtype == torch.bfloat16 else result).numpy()

    return run
