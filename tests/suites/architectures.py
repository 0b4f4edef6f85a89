"""Networks of well-known architectures with random weights, small where the architecture allows.

Architectures come from torchvision, timm and transformers (`pip install 'ansor[models]'`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

# torchvision's compiled operators may not load beside a CPU-only PyTorch; no network here uses one.
for _name in ("_meta_registrations", "_autograd_registrations"):
    sys.modules.setdefault(f"torchvision.{_name}", types.ModuleType(_name))

import timm  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402

from tests.suites.own_networks import (  # noqa: E402
    CausalEncoder,
    RecurrentClassifier,
    UNet,
    YoloHead,
    image,
    tokens,
)

Inputs = tuple[Any, ...]
Case = Callable[[], tuple[nn.Module, Callable[[], Inputs]]]


def _vision(name: str, size: int = 64, **options: Any) -> Case:
    def build() -> tuple[nn.Module, Callable[[], Inputs]]:
        make = getattr(torchvision.models, name)
        return make(weights=None, **options), lambda: (image(3, size),)

    return build


def _timm(name: str, size: int, **options: Any) -> Case:
    def build() -> tuple[nn.Module, Callable[[], Inputs]]:
        model = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return model, lambda: (image(3, size),)

    return build


def _transformer(
    kind: str,
    settings: str,
    inputs: Callable[[], Inputs] = lambda: (tokens(100, 12),),
    **sizes: Any,
) -> Case:
    def build() -> tuple[nn.Module, Callable[[], Inputs]]:
        config = getattr(transformers, settings)(**sizes, use_cache=False)
        return getattr(transformers, kind)(config), inputs

    return build


def _segmentation() -> tuple[nn.Module, Callable[[], Inputs]]:
    make = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large
    model = make(weights=None, weights_backbone=None, num_classes=5)
    return model, lambda: (image(3, 64),)


def _video() -> tuple[nn.Module, Callable[[], Inputs]]:
    stem, block = torchvision.models.video.resnet.R2Plus1dStem, torchvision.models.video.resnet
    model = block.VideoResNet(
        block.BasicBlock, [block.Conv2Plus1D] * 4, [1, 1, 1, 1], stem, num_classes=10
    )
    return model, lambda: (torch.randn(1, 3, 4, 32, 32),)


def _video_3d() -> tuple[nn.Module, Callable[[], Inputs]]:
    block = torchvision.models.video.resnet
    model = block.VideoResNet(
        block.BasicBlock, [block.Conv3DSimple] * 4, [1, 1, 1, 1], block.BasicStem, num_classes=10
    )
    return model, lambda: (torch.randn(1, 3, 4, 32, 32),)


def _encoder() -> tuple[nn.Module, Callable[[], Inputs]]:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 2), lambda: (torch.randn(2, 10, 64),)


def _causal_encoder() -> tuple[nn.Module, Callable[[], Inputs]]:
    return CausalEncoder(64, 10), lambda: (torch.randn(10, 2, 64),)


def _own(model: Callable[[], nn.Module], inputs: Callable[[], Inputs]) -> Case:
    return lambda: (model(), inputs)


def _whisper() -> tuple[nn.Module, Callable[[], Inputs]]:
    config = transformers.WhisperConfig(
        d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128,
        num_mel_bins=16, max_source_positions=50, vocab_size=100, decoder_layers=1,
        decoder_attention_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1,
    )  # fmt: skip
    encoder = transformers.WhisperModel(config).get_encoder()
    return encoder, lambda: (torch.randn(1, 16, 100),)


def _vit() -> tuple[nn.Module, Callable[[], Inputs]]:
    model = torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10)
    nn.init.normal_(model.heads.head.weight)  # zero by default
    return model, lambda: (image(3, 32),)


def _swin() -> tuple[nn.Module, Callable[[], Inputs]]:
    model = torchvision.models.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10)
    return model, lambda: (image(3, 64),)


def _densenet() -> tuple[nn.Module, Callable[[], Inputs]]:
    return torchvision.models.DenseNet(16, (3, 3, 3, 3), 32, num_classes=10), lambda: (
        image(3, 64),
    )


_SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}

CASES: Mapping[str, Case] = {
    "GPT-2": _transformer(
        "GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=2, n_head=4, vocab_size=100
    ),
    "Llama": _transformer(
        "LlamaForCausalLM",
        "LlamaConfig",
        intermediate_size=128,
        num_key_value_heads=2,
        **_SMALL,
    ),
    "BERT": _transformer("BertModel", "BertConfig", intermediate_size=128, **_SMALL),
    "T5 encoder": _transformer(
        "T5EncoderModel", "T5Config", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
        vocab_size=100,
    ),
    "Whisper encoder": _whisper,
    "ViT": _vit,
    "Swin": _swin,
    "ConvNeXt": _timm("convnext_atto", 64, depths=(1, 1, 2, 1)),
    "EfficientNet": _vision("efficientnet_b0"),
    "DenseNet": _densenet,
    "ShuffleNet": _vision("shufflenet_v2_x0_5"),
    "MobileNet-V3": _vision("mobilenet_v3_small"),
    "ResNet": _vision("resnet18"),
    "RegNet": _timm("regnety_002", 64),
    "U-Net": _own(UNet, lambda: (image(3, 64),)),
    "DeepLab": _segmentation,
    "YOLO head": _own(YoloHead, lambda: (image(32, 16), image(64, 8), image(128, 4))),
    "LSTM classifier": _own(
        lambda: RecurrentClassifier(nn.LSTM), lambda: (tokens(50, 12, rows=2),)
    ),
    "GRU classifier": _own(lambda: RecurrentClassifier(nn.GRU), lambda: (tokens(50, 12, rows=2),)),
    "nn.TransformerEncoder": _encoder,
    "nn.TransformerEncoder, causal": _causal_encoder,
    "R(2+1)D": _video,
    "R3D": _video_3d,
}  # fmt: skip
