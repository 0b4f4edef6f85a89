"""The order of equal elements where PyTorch leaves it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class FirstOfEquals(TorchDispatchMode):  # type: ignore[misc]
    """Within, `topk` takes the first ones of equal elements.

    PyTorch itself takes any of them, which depends on its algorithm and the number of elements; a
    comparison with it needs an order that is defined.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The operator's result."""
        if func is torch.ops.aten.topk.default:
            return _stable_topk(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _stable_topk(
    data: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    if data.dim() == 0:
        return data.clone(), torch.zeros((), dtype=torch.int64)
    values, places = torch.sort(data, stable=True, dim=dim, descending=largest)
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()
