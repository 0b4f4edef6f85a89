"""The original of an imported model, whose framework computes the results to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt
import tvm

from ansor.frontend.calling import Calling
from ansor.frontend.signature import InputSpec

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class NodeCase:
    """One operator of the original graph, on the values that it has in a run of the original.

    Attributes:
        operator: of the original framework.
        place: the layer, or the node, as messages name it.
        inputs: the node's operands that are tensors.
        expected: its results.
        import_alone: imports a model of this node alone, with `inputs` as its inputs.

    """

    operator: str
    place: str
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    import_alone: Callable[[], tvm.IRModule]


class SourceModel(Protocol):
    """A model in the framework that it comes from."""

    @property
    def framework(self) -> str:
        """Readable name of the framework."""
        ...

    @property
    def inputs(self) -> tuple[InputSpec, ...]:
        """The tensors that the model takes in a row."""
        ...

    @property
    def examples(self) -> tuple[Array, ...] | None:
        """Values of the inputs that the user gave; None if there are none."""
        ...

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs in a row for inputs in a row.

        Raises:
            Exception: whatever the framework raises for inputs that the model does not take.
        """
        ...

    def nodes(self, arrays: Sequence[Array]) -> Iterator[NodeCase]:
        """The operators of the model in order, each distinct one once, with their values in a run
        on these inputs."""
        ...


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """A network: `mod` holds one Relax function, `entry`, with static shapes and bound weights.

    Attributes:
        inputs: of the function, in a row; those of the state come last.
        calling: how users call it.
        state: initial values of tensors that the network keeps between calls: its last inputs, and
            its last outputs.
        source: the model that it was imported from; None where nothing can be compared.
    """

    mod: tvm.IRModule
    entry: str
    inputs: tuple[InputSpec, ...]
    calling: Calling
    state: tuple[Array, ...] = field(default=())
    source: SourceModel | None = None
