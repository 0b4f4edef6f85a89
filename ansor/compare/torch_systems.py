"""PyTorch: eager, channels-last, compiled by Inductor; and the export to ONNX."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch._inductor.config

from ansor.compare.case import Case, input_rank, inputs, network
from ansor.models.torch_twin import torch_twin


def eager(case: Case) -> Any:
    """The network as PyTorch runs it by default."""
    torch.set_num_threads(case.threads)
    return _call(_twin(case))


def channels_last(case: Case) -> Any:
    """The same with weights and activations of images in NHWC, of videos in NDHWC."""
    torch.set_num_threads(case.threads)
    layout = torch.channels_last if input_rank(case) == 4 else torch.channels_last_3d
    model = _twin(case).to(memory_format=layout)
    run = _call(model)
    return lambda x: run(_tensor(x).contiguous(memory_format=layout))


def inductor(case: Case) -> Any:
    """`torch.compile` with weights frozen into the program."""
    torch.set_num_threads(case.threads)
    settings = torch._inductor.config
    settings.freezing = True
    settings.compile_threads = 1  # its pool of compiling processes disturbs the clock
    mode = "default" if case.device == "cpu" else "max-autotune"
    return _call(torch.compile(_twin(case), mode=mode))


def export_onnx(case: Case) -> None:
    """Writes the network to the case's ONNX file."""
    built = network(case)
    example = tuple(torch.from_numpy(array) for array in inputs(built))
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
        return result if result.is_cuda else result.numpy()

    return run
