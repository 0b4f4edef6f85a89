"""Our converters of ATen operators.

`registry.convert` binds a node's arguments, calls the function that one of these files registers
for the operator, and compares the result's shape and dtype with PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Importing a file registers its converters.
from ansor.frontend.importers.from_torch.converters import (  # noqa: F401
    activation,
    create,
    distance,
    elementwise,
    indexing,
    mathematics,
    normalization,
    ordering,
    pooling,
    product,
    quantization,
    recurrent,
    reduction,
    replacement,
    resize,
    shape,
)
from ansor.frontend.importers.from_torch.converters.registry import convert

Converter = Callable[[torch.fx.Node, Any], Any]  # (node, translator) -> Relax expression(s)


def converter_for(node: torch.fx.Node) -> Converter:
    """The converter of the node's operator."""
    return convert
