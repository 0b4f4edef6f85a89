"""A `Task`: one workload to tune on one target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ansor.dag.graph import ComputeDAG
from ansor.program.hand_schedule import HandSchedule

DIRECT = "direct"  # kind of a definition as the model gives it


@dataclass(frozen=True)
class Converted:
    """Position of a parameter that a variant takes in another form, and what makes that of the
    original's array; can be pickled."""

    position: int
    convert: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Original:
    """The definition that a variant stands for.

    Attributes:
        name: function of the network.
        kind: of the variant.
        func: with the parameters of the variant, but for one that is converted.
        converted: that one, if there is one.
    """

    name: str
    kind: str
    func: tirx.PrimFunc
    converted: Converted | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One workload to tune.

    Attributes:
        name: function of the network.
        func: the compute definition.
        dag: the same as a graph.
        target: canonical text of the TVM target.
        weight: how often the model calls it.
        in_network: whether others run between two of its runs, so that it is timed with weights
            that are not in the caches and activations that other functions have left.
        original: what this is a variant of, if it is one.
        by_hand: a schedule that a user wrote, whose knobs are the space of programs; without one
            the space is that of the derived sketches.
    """

    name: str
    func: tirx.PrimFunc
    dag: ComputeDAG
    target: str
    weight: int = 1
    in_network: bool = False
    original: Original | None = None
    by_hand: HandSchedule | None = None

    @property
    def group(self) -> str:
        """Function of the network that the task, or one of its variants, makes faster."""
        return self.name if self.original is None else self.original.name

    @property
    def kind(self) -> str:
        """The kind of this definition among a function's definitions."""
        return DIRECT if self.original is None else self.original.kind

    @property
    def key(self) -> str:
        """Hash of the compute definition, stable over processes, platforms and versions.

        A suffix marks a task that is timed as a part of a network. The name of a schedule that a
        user wrote follows."""
        timed = f"{self.dag.key}-network" if self.in_network else self.dag.key
        return timed if self.by_hand is None else f"{timed}-{self.by_hand.name}"

    @property
    def constants(self) -> tuple[int, ...]:
        """Positions of the parameters that are weights, known when the network is compiled."""
        buffers = self.dag.buffers.values()  # parameters come first, in order
        return tuple(i for i, buffer in enumerate(buffers) if buffer.constant)
