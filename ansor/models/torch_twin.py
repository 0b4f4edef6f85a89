"""The built-in models in PyTorch, with the very same parameters: peer and reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from ansor.models.bert import BertConfig
from ansor.models.layers import EPSILON
from ansor.models.mobilenet import InvertedShape, MobileNetConfig, inverted_shapes
from ansor.models.parameters import Array
from ansor.models.registry import ModelConfig, model_config
from ansor.models.resnet import BlockShape, ResNetConfig, block_shapes


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=EPSILON)


def _shortcut(shape: BlockShape) -> nn.Module | None:
    if not shape.projects:
        return None
    conv = _conv(shape.in_channels, shape.out_channels, 1, shape.stride)
    return nn.Sequential(conv, _norm(shape.out_channels))


class TorchBasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 3, shape.stride)
        self.bn1 = _norm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.out_channels, 3)
        self.bn2 = _norm(shape.out_channels)
        self.downsample = _shortcut(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchBottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 convolutions, beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.conv1 = _conv(shape.in_channels, shape.channels, 1)
        self.bn1 = _norm(shape.channels)
        self.conv2 = _conv(shape.channels, shape.channels, 3, shape.stride)
        self.bn2 = _norm(shape.channels)
        self.conv3 = _conv(shape.channels, shape.out_channels, 1)
        self.bn3 = _norm(shape.out_channels)
        self.downsample = _shortcut(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchResNet(nn.Module):
    """The network: stem, stages, mean over the image, classifier."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        block = TorchBottleneck if config.bottleneck else TorchBasicBlock
        self.conv1 = nn.Conv2d(3, config.width, 7, stride=2, padding=3, bias=False)
        self.bn1 = _norm(config.width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.depth = len(config.blocks)
        for index, shapes in enumerate(block_shapes(config), start=1):
            setattr(self, f"layer{index}", nn.Sequential(*map(block, shapes)))
        features = (config.width << (self.depth - 1)) * config.expansion
        self.fc = nn.Linear(features, config.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for index in range(1, self.depth + 1):
            x = getattr(self, f"layer{index}")(x)
        logits: torch.Tensor = self.fc(x.mean((2, 3)))
        return logits


class TorchConvNorm(nn.Sequential):
    """Convolution, batch normalisation, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        padding = kernel // 2
        conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        super().__init__(conv, _norm(outputs), nn.ReLU6())


class TorchInvertedResidual(nn.Module):
    """1×1 up, 3×3 depthwise, 1×1 down without activation."""

    def __init__(self, shape: InvertedShape) -> None:
        super().__init__()
        hidden, out = shape.hidden, shape.out_channels
        layers: list[nn.Module] = [TorchConvNorm(shape.in_channels, hidden, 1)] * shape.expands
        layers.append(TorchConvNorm(hidden, hidden, 3, shape.stride, groups=hidden))
        layers += [nn.Conv2d(hidden, out, 1, bias=False), _norm(out)]
        self.conv = nn.Sequential(*layers)
        self.adds = shape.adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, in, H, W] -> [N, out, H/stride, W/stride]`."""
        y: torch.Tensor = self.conv(x)
        return y + x if self.adds else y


class TorchMobileNet(nn.Module):
    """The network: stem, blocks, last convolution, mean over the image, classifier."""

    def __init__(self, config: MobileNetConfig) -> None:
        super().__init__()
        shapes = list(inverted_shapes(config))
        layers: list[nn.Module] = [TorchConvNorm(3, config.stem, 3, stride=2)]
        layers += [TorchInvertedResidual(shape) for shape in shapes]
        layers.append(TorchConvNorm(shapes[-1].out_channels, config.features, 1))
        self.features = nn.Sequential(*layers)
        linear = nn.Linear(config.features, config.classes)
        self.classifier = nn.Sequential(nn.Dropout(), linear)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[N, 3, H, W] -> [N, classes]`."""
        logits: torch.Tensor = self.classifier(self.features(x).mean((2, 3)))
        return logits


class _TorchSelf(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.hidden, config.hidden)
        self.key = nn.Linear(config.hidden, config.hidden)
        self.value = nn.Linear(config.hidden, config.hidden)
        self.heads = config.heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (part(x) for part in (self.query, self.key, self.value))
        split = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        return nn.functional.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)


class _TorchOutput(nn.Module):
    def __init__(self, inputs: int, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden)
        self.LayerNorm = nn.LayerNorm(config.hidden, eps=config.epsilon)

    def forward(self, x: torch.Tensor, shortcut: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.LayerNorm(self.dense(x) + shortcut)
        return out


class _TorchAttention(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = _TorchSelf(config)
        self.output = _TorchOutput(config.hidden, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.output(self.self(x), x)
        return out


class _TorchIntermediate(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden, config.intermediate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.dense(x))


class _TorchLayer(nn.Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _TorchAttention(config)
        self.intermediate = _TorchIntermediate(config)
        self.output = _TorchOutput(config.intermediate, config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        out: torch.Tensor = self.output(self.intermediate(x), x)
        return out


class TorchBert(nn.Module):
    """The encoder's layers, one after the other."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.Sequential(*[_TorchLayer(config) for _ in range(config.layers)])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """`[N, tokens, hidden] -> [N, tokens, hidden]`."""
        out: torch.Tensor = self.layer(hidden)
        return out


_FAMILIES: Mapping[type, Callable[[Any], nn.Module]] = {
    ResNetConfig: TorchResNet,
    MobileNetConfig: TorchMobileNet,
    BertConfig: TorchBert,
}


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
    return load_parameters(_FAMILIES[type(config)](config), params)
