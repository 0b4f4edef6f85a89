"""Built-in models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import tvm
from tvm.relax.frontend import nn

from ansor.errors import ArgumentError
from ansor.models.bert import BERT_BASE
from ansor.models.dcgan import DCGAN
from ansor.models.inception import INCEPTION_V3
from ansor.models.layers import FAN_IN
from ansor.models.mobilenet import MOBILENET_V2
from ansor.models.parameters import Array, draw
from ansor.models.resnet import RESNET18, RESNET34, RESNET50
from ansor.models.resnet3d import RESNET3D_18
from ansor.models.squeezenet import SQUEEZENET1_1
from ansor.models.vgg import VGG16
from ansor.models.vit import VIT_B_16


class ModelConfig(Protocol):
    """Shape of a network of some family."""

    def network(self) -> nn.Module:
        """The network to be exported."""

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of its input."""


_BATCH = ":batch="

CONFIGS: Mapping[str, ModelConfig] = MappingProxyType(
    {
        "resnet18": RESNET18,
        "resnet34": RESNET34,
        "resnet50": RESNET50,
        "mobilenet_v2": MOBILENET_V2,
        "squeezenet1_1": SQUEEZENET1_1,
        "vgg16": VGG16,
        "inception_v3": INCEPTION_V3,
        "resnet3d_18": RESNET3D_18,
        "dcgan": DCGAN,
        "bert_base": BERT_BASE,
        "vit_b_16": VIT_B_16,
    }
)


@dataclass(frozen=True, eq=False)
class BuiltInModel:
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


def model_config(name: str) -> ModelConfig:
    """Shape of a built-in model.

    Raises:
        ArgumentError: unknown name, or a batch that is no positive integer.
    """
    return CONFIGS[split_name(name)[0]]


def split_name(text: str) -> tuple[str, int]:
    """The name of a built-in model and its batch: "resnet50" has one image, "resnet50:batch=16" 16.

    Raises:
        ArgumentError: unknown name, or a batch that is no positive integer.
    """
    name, sized, batch = text.partition(_BATCH)
    if name not in CONFIGS:
        known = ", ".join(CONFIGS)
        raise ArgumentError("model", text, f"give one of the built-in models: {known}")
    if sized and not batch.isdecimal():
        raise ArgumentError("model", text, f"write {name}{_BATCH}16 for a batch of 16")
    number = int(batch) if sized else 1
    _check_batch(number)
    return name, number


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise ArgumentError("batch", batch, "must be a positive integer")


def _shape(parameter: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in parameter.shape)


def build_from_config(
    config: ModelConfig, name: str, batch: int = 1, seed: int = 0
) -> BuiltInModel:
    """A network of any shape; its input is float32.

    Raises:
        ArgumentError: batch below one.
    """
    _check_batch(batch)
    entry, shape = config.input_of(batch)
    spec = {"forward": {entry: nn.spec.Tensor(shape, "float32")}}
    mod, parameters = config.network().export_tvm(spec)
    shapes = {key: _shape(parameter) for key, parameter in parameters}
    fan_ins = {key: p.attrs[FAN_IN] for key, p in parameters if FAN_IN in p.attrs}
    params = draw(shapes, seed, fan_ins)
    return BuiltInModel(name, mod, MappingProxyType(params), ((entry, shape),))


def build_model(text: str, seed: int = 0) -> BuiltInModel:
    """A built-in model with random parameters; the same seed gives the same parameters.

    Args:
        text: a name, with or without a batch, see `split_name`.

    Raises:
        ArgumentError: as `split_name`.
    """
    name, batch = split_name(text)
    return build_from_config(CONFIGS[name], name, batch, seed)
