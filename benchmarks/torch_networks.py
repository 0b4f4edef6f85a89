"""Networks of torchvision and transformers in their usual sizes, with random weights."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

TOKENS = 128
Network = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
# torchvision's compiled operators may not load beside a CPU-only PyTorch; no network here uses one.
_COMPILED = ("torchvision._meta_registrations", "torchvision._autograd_registrations")


def _vision(name: str) -> Callable[[], Network]:
    def build() -> Network:
        for part in _COMPILED:
            sys.modules.setdefault(part, types.ModuleType(part))
        import torchvision

        module = getattr(torchvision.models, name)(weights=None)
        return module, (torch.randn(1, 3, 224, 224),)

    return build


def _language(kind: str, settings: str, **sizes: Any) -> Callable[[], Network]:
    def build() -> Network:
        import transformers

        config = getattr(transformers, settings)(use_cache=False, **sizes)
        module = getattr(transformers, kind)(config)
        return module, (torch.randint(config.vocab_size, (1, TOKENS)),)

    return build


NETWORKS: Mapping[str, Callable[[], Network]] = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "mobilenet_v2": _vision("mobilenet_v2"),
    "efficientnet_b0": _vision("efficientnet_b0"),
    "shufflenet_v2": _vision("shufflenet_v2_x1_0"),
    "vit_b_16": _vision("vit_b_16"),
    "bert": _language("BertModel", "BertConfig"),
    "distilbert": _language("DistilBertModel", "DistilBertConfig"),
    "gpt2": _language("GPT2Model", "GPT2Config"),
    "t5_encoder": _language("T5EncoderModel", "T5Config"),
}


def network(name: str) -> Network:
    """A network in eval mode and its inputs; the same in every process."""
    torch.manual_seed(0)
    module, inputs = NETWORKS[name]()
    for parameter in module.parameters():
        if not parameter.any():  # the head of a vision transformer, whose result would be zero
            torch.nn.init.normal_(parameter, std=0.02)
    return module.eval(), inputs
