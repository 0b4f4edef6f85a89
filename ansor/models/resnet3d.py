"""3D ResNet (Tran et al., 2017) for short videos, as PyTorch users know it.

Attribute names give torchvision's parameter names ("layer2.0.conv1.1.running_var").
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ansor.models.layers import BatchNorm, global_avg_pool
from ansor.models.resnet import BlockShape, ResNetConfig, block_shapes


@dataclass(frozen=True)
class ResNet3dConfig:
    """Shape of a residual network of two 3×3×3 convolutions per block."""

    blocks: tuple[int, ...] = (2, 2, 2, 2)  # residual blocks per stage
    width: int = 64  # channels of the stem and of the first stage; doubles from stage to stage
    classes: int = 400
    frames: int = 16
    image: int = 112  # height and width of a frame

    def stages(self) -> list[list[BlockShape]]:
        """Block shapes of every stage."""
        return list(block_shapes(ResNetConfig(blocks=self.blocks, width=self.width)))

    def network(self) -> nn.Module:
        """The network to be exported."""
        return ResNet3d(self)

    def input_of(self, batch: int) -> tuple[str, tuple[int, ...]]:
        """Name and shape of the input."""
        return "x", (batch, 3, self.frames, self.image, self.image)


RESNET3D_18 = ResNet3dConfig()


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
    conv = nn.Conv3D(inputs, outputs, kernel, [stride] * 3, [kernel // 2] * 3, bias=False)
    return [conv, BatchNorm(outputs)]


class _Block(nn.Module):  # type: ignore[misc]
    """Two 3×3×3 convolutions beside a shortcut."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        inputs, out = shape.in_channels, shape.out_channels
        self.conv1 = nn.ModuleList([*_conv_norm(inputs, out, 3, shape.stride), nn.ReLU()])
        self.conv2 = nn.ModuleList(_conv_norm(out, out, 3, 1))
        shortcut = _conv_norm(inputs, out, 1, shape.stride) if shape.projects else []
        self.downsample = nn.ModuleList(shortcut)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, in, D, H, W] -> [N, out, D/stride, H/stride, W/stride]`."""
        return nn.op.relu(nn.op.add(self.conv2(self.conv1(x)), self.downsample(x)))


class ResNet3d(nn.Module):  # type: ignore[misc]
    """The network: stem, stages, mean over the video, classifier."""

    def __init__(self, config: ResNet3dConfig) -> None:
        super().__init__()
        conv = nn.Conv3D(3, config.width, [3, 7, 7], [1, 2, 2], [1, 3, 3], bias=False)
        self.stem = nn.ModuleList([conv, BatchNorm(config.width), nn.ReLU()])
        stages = config.stages()
        self.depth = len(stages)
        for index, shapes in enumerate(stages, start=1):
            setattr(self, f"layer{index}", nn.ModuleList([_Block(shape) for shape in shapes]))
        self.fc = nn.Linear(stages[-1][-1].out_channels, config.classes)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """`[N, 3, D, H, W] -> [N, classes]`."""
        x = self.stem(x)
        for index in range(1, self.depth + 1):
            x = getattr(self, f"layer{index}")(x)
        return self.fc(global_avg_pool(x))
