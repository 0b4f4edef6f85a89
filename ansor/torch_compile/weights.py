"""Parameters and buffers among the inputs of a captured graph, and whether they have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import Any

import torch

Pick = Callable[[Sequence[Any]], Sequence[torch.Tensor]]


def is_weight(node: torch.fx.Node, value: object) -> bool:
    """Whether an input of a graph of TorchDynamo is a parameter, a buffer or another tensor of a
    module that keeps its place between calls.

    A tensor of inference mode is none: PyTorch does not count its changes.
    """
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return False
    marked = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
    return isinstance(value, torch.nn.Parameter) or marked is not None


@dataclass(frozen=True, eq=False)
class Weights:
    """Arguments that a compiled graph holds as constants, as they were when it was compiled.

    Attributes:
        places: of the arguments.
        tensors: the arguments.
        versions: PyTorch's counts of their changes.
        addresses: of their memory, since `parameter.data = tensor` counts as no change.
        pick: takes the same places of other arguments.
        are_frozen: whether changes in place are left out of the check.
    """

    places: tuple[int, ...]
    tensors: tuple[torch.Tensor, ...]
    versions: list[int]
    addresses: list[int]
    pick: Pick
    are_frozen: bool = False

    @classmethod
    def of(cls, args: Sequence[Any], places: Sequence[int], are_frozen: bool = False) -> Weights:
        """The arguments at some places, as they are."""
        tensors = tuple(args[place] for place in places)
        known = tensors, _versions(tensors), _addresses(tensors)
        return cls(tuple(places), *known, _picker(places), are_frozen)

    def are_in(self, args: Sequence[Any]) -> bool:
        """Whether these are still the arguments, and no change of them is known."""
        tensors = self.pick(args)
        if not all(map(is_, tensors, self.tensors)):
            return False
        return self.are_frozen or (
            self.versions == _versions(tensors) and self.addresses == _addresses(tensors)
        )

    def changed(self, args: Sequence[Any]) -> list[int]:
        """Places of the arguments that have changed."""
        known = zip(self.places, self.tensors, self.versions, self.addresses, strict=True)
        return [
            place
            for place, tensor, version, address in known
            if (args[place] is not tensor)
            or (tensor._version, tensor.data_ptr()) != (version, address)
        ]


def _picker(places: Sequence[int]) -> Pick:
    """A fast function that takes some of the arguments."""
    if len(places) == 1:
        return lambda args: (args[places[0]],)
    return itemgetter(*places) if places else lambda _: ()


def _versions(tensors: Sequence[torch.Tensor]) -> list[int]:
    return [tensor._version for tensor in tensors]


def _addresses(tensors: Sequence[torch.Tensor]) -> list[int]:
    return list(map(torch.Tensor.data_ptr, tensors))
