"""Our converters of ATen operators, which come before TVM's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Converter = Callable[[torch.fx.Node, Any], Any]  # (node, translator) -> Relax expression(s)

CONVERTERS: Mapping[str, Converter] = {}  # by the operator's name with its overload, "add.Tensor"


def converter_for(node: torch.fx.Node) -> Converter | None:
    """Our converter of the node's operator; None where TVM's is used."""
    return CONVERTERS.get(node.target.__name__)
