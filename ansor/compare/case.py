"""The subject of a comparison: a network, its files, and the times of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansor.models import BuiltInModel, build_model, model_config
from ansor.models.parameters import Array

REFERENCE = "reference"  # name of PyTorch's output in float32


@dataclass(frozen=True)
class Case:
    """One compared network; child processes get it as JSON.

    Attributes:
        model: name of a built-in network.
        folder: holds the saved networks, the exported one, and each system's outputs.
        threads: that every system may use.
        warm_up_s: seconds of runs before the clock counts, each turn.
        seconds: of timed runs, each turn.
        device: "cpu" or "cuda", where every system runs and finds its inputs.
        tf32: whether all systems may round operands in float32 to tf32, for tensor cores.
        precision: of our own network: "float32", "bfloat16", "int8" or "auto".
    """

    model: str
    folder: str
    threads: int
    warm_up_s: float = 0.1
    seconds: float = 0.4
    device: str = "cpu"
    tf32: bool = False
    precision: str = "float32"

    def file(self, name: str) -> Path:
        """A file of the case."""
        return Path(self.folder) / name

    @property
    def tuned(self) -> Path:
        """The tuned network, saved."""
        return self.file("tuned.ansor")

    @property
    def untuned(self) -> Path:
        """The network with its definitions without schedules, saved."""
        return self.file("untuned.ansor")

    @property
    def onnx(self) -> Path:
        """The network as PyTorch exports it."""
        return self.file("model.onnx")

    @property
    def quantized(self) -> Path:
        """The exported network in 8-bit integers, quantised by ONNX Runtime."""
        return self.file("model.int8.onnx")

    @property
    def source(self) -> str:
        """The model of our own network, as an argument of `auto_schedule`."""
        return str(self.quantized) if self.precision == "int8" else self.model

    @property
    def is_low(self) -> bool:
        """Whether our own network may compute in less than float32."""
        return self.precision != "float32"

    def output(self, system: str) -> Path:
        """The output of a system."""
        return self.file(f"{system}.npy")


def network(case: Case) -> BuiltInModel:
    """The network with the weights that all systems share."""
    return build_model(case.model)


def input_rank(case: Case) -> int:
    """Number of dimensions of the network's input."""
    _, shape = model_config(case.model).input_of(batch=1)
    return len(shape)


def inputs(model: BuiltInModel, seed: int = 0) -> Sequence[Array]:
    """The inputs of all systems; another seed gives inputs for calibration."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape, dtype=np.float32) for _, shape in model.inputs]
