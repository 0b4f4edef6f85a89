"""A sample of the suite of networks: those that need no package of architectures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from tvm.target import Target

from ansor.frontend import compile_model, import_model, optimize
from ansor.run.check.compare import NETWORK_TOLERANCE, difference
from tests.suites.own_networks import (
    CausalEncoder,
    RecurrentClassifier,
    UNet,
    YoloHead,
    image,
    tokens,
)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]] = {
    "U-Net": (UNet, lambda: (image(3, 16),)),
    "YOLO head": (YoloHead, lambda: (image(32, 8), image(64, 4), image(128, 2))),
    "LSTM": (lambda: RecurrentClassifier(nn.LSTM), lambda: (tokens(50, 7, rows=2),)),
    "GRU": (lambda: RecurrentClassifier(nn.GRU), lambda: (tokens(50, 7),)),
    "encoder": (encoder, lambda: (torch.randn(2, 6, 32),)),
    "causal encoder": (lambda: CausalEncoder(32, 6), lambda: (torch.randn(6, 2, 32),)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, target: Target) -> None:
    torch.manual_seed(0)
    build, inputs = NETWORKS[name]
    module, example = build().eval(), inputs()
    compiled = compile_model(optimize(import_model(module, example).mod, target), target)
    for given in (example, inputs()):
        with torch.no_grad():
            expected = module(*given).numpy()
        found = compiled(*(tensor.numpy() for tensor in given))
        result = difference([found], [expected], NETWORK_TOLERANCE)
        assert result.excess <= 1, result.text
