"""The built-in models in PyTorch, with the very same parameters: peers and references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from ansor.models.bert import BertConfig
from ansor.models.dcgan import DcganConfig
from ansor.models.inception import InceptionConfig
from ansor.models.mobilenet import MobileNetConfig
from ansor.models.parameters import Array
from ansor.models.registry import ModelConfig, model_config
from ansor.models.resnet import ResNetConfig
from ansor.models.resnet3d import ResNet3dConfig
from ansor.models.squeezenet import SqueezeNetConfig
from ansor.models.torch_twin.bert import TorchBert
from ansor.models.torch_twin.dcgan import TorchGenerator
from ansor.models.torch_twin.inception import TorchInception
from ansor.models.torch_twin.mobilenet import TorchMobileNet
from ansor.models.torch_twin.resnet import TorchResNet
from ansor.models.torch_twin.resnet3d import TorchResNet3d
from ansor.models.torch_twin.squeezenet import TorchSqueezeNet
from ansor.models.torch_twin.vgg import TorchVgg
from ansor.models.torch_twin.vit import TorchVit
from ansor.models.vgg import VggConfig
from ansor.models.vit import VitConfig

__all__ = ["TorchResNet", "load_parameters", "torch_twin", "twin_of"]

FAMILIES: Mapping[type, Callable[[Any], nn.Module]] = MappingProxyType(
    {
        ResNetConfig: TorchResNet,
        MobileNetConfig: TorchMobileNet,
        SqueezeNetConfig: TorchSqueezeNet,
        VggConfig: TorchVgg,
        InceptionConfig: TorchInception,
        ResNet3dConfig: TorchResNet3d,
        DcganConfig: TorchGenerator,
        BertConfig: TorchBert,
        VitConfig: TorchVit,
    }
)


def load_parameters(model: nn.Module, params: Mapping[str, Array]) -> nn.Module:
    """Copies the parameters in by name and puts the model in eval mode; none may be missing."""
    state = {name: torch.tensor(value) for name, value in params.items()}
    counters = {name for name in model.state_dict() if name.endswith("num_batches_tracked")}
    state.update({name: torch.tensor(0) for name in counters})
    model.load_state_dict(state)
    return model.eval()


def torch_twin(name: str, params: Mapping[str, Array]) -> nn.Module:
    """The PyTorch model that computes what `build_model(name)` computes with these parameters.

    Raises:
        ArgumentError: unknown name.
    """
    return twin_of(model_config(name), params)


def twin_of(config: ModelConfig, params: Mapping[str, Array]) -> nn.Module:
    """The same for a network of any shape."""
    return load_parameters(FAMILIES[type(config)](config), params)
