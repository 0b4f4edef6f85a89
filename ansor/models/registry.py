"""Built-in models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tvm
from tvm.relax.frontend import nn

from ansor.errors import ArgumentError
from ansor.models.parameters import Array, draw
from ansor.models.resnet import RESNET18, RESNET50, ResNet, ResNetConfig

CONFIGS: Mapping[str, ResNetConfig] = MappingProxyType({"resnet18": RESNET18, "resnet50": RESNET50})


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model as a Relax module whose parameters are still inputs of its function.

    `mod` holds one function, "forward"(*inputs, *parameters); `params` are its parameters by name,
    float32; `inputs` pairs each input's name with its shape (all float32).
    """

    name: str
    mod: tvm.IRModule
    params: Mapping[str, Array]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]


def model_names() -> tuple[str, ...]:
    """Names that `build_model` knows."""
    return tuple(CONFIGS)


def model_config(name: str) -> ResNetConfig:
    """Shape of a built-in model.

    Raises:
        ArgumentError: unknown name.
    """
    if name not in CONFIGS:
        known = ", ".join(CONFIGS)
        raise ArgumentError("model", name, f"built-in models are {known}")
    return CONFIGS[name]


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise ArgumentError("batch", batch, "must be a positive integer")


def _shape(parameter: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in parameter.shape)


def build_resnet(config: ResNetConfig, name: str, batch: int = 1, seed: int = 0) -> BuiltModel:
    """A residual network of any shape; input "x" `[batch, 3, image, image]` float32.

    Raises:
        ArgumentError: batch below one.
    """
    _check_batch(batch)
    shape = (batch, 3, config.image, config.image)
    spec = {"forward": {"x": nn.spec.Tensor(shape, "float32")}}
    mod, parameters = ResNet(config).export_tvm(spec)
    params = draw({key: _shape(parameter) for key, parameter in parameters}, seed)
    return BuiltModel(name, mod, MappingProxyType(params), (("x", shape),))


def build_model(name: str, batch: int = 1, seed: int = 0) -> BuiltModel:
    """A built-in model with random parameters; the same seed gives the same parameters.

    Raises:
        ArgumentError: unknown name, or batch below one.
    """
    return build_resnet(model_config(name), name, batch, seed)
