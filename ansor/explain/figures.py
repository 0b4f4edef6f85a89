"""The parts of an explanation: frozen data, each about one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The measured time compared with the peak of the machine.

    Attributes:
        latency_s: seconds of one run; None if the program was not measured.
        flops: operations of one run, of the definition.
        peak_flops: operations per second of all cores; None if it is not known.
        peak_name: of these operations, such as "float32".
        compulsory_bytes: bytes of inputs and outputs, each once.
        memory_bytes_per_s: bandwidth of memory; None if it is not known.
    """

    latency_s: float | None
    flops: int
    peak_flops: float | None
    peak_name: str
    compulsory_bytes: int
    memory_bytes_per_s: float | None

    @property
    def arithmetic_s(self) -> float | None:
        """Seconds of the operations at the peak."""
        return self.flops / self.peak_flops if self.peak_flops else None

    @property
    def memory_s(self) -> float | None:
        """Seconds of the compulsory bytes at the bandwidth of memory."""
        return self.compulsory_bytes / self.memory_bytes_per_s if self.memory_bytes_per_s else None


@dataclass(frozen=True)
class Part:
    """One part of the drafted time, summed over all stages.

    Attributes:
        share: of the whole drafted time.
    """

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class StageTime:
    """The drafted time of one stage, and the largest part of it."""

    stage: str
    seconds: float
    largest: str


@dataclass(frozen=True)
class DraftedTime:
    """The draft's estimate and its parts: `seconds` is `together_s` plus the sum of `further`.

    Attributes:
        resources: parts that happen at the same time, the largest first.
        together_s: seconds of all resources with their overlap.
        further: parts that add to it, the largest first.
        included: parts of one resource.
        stages: in the order of the graph.
        bound: name of the largest part, which bounds the program.
    """

    seconds: float
    resources: tuple[Part, ...]
    together_s: float
    further: tuple[Part, ...]
    included: tuple[Part, ...]
    stages: tuple[StageTime, ...]
    bound: str


@dataclass(frozen=True)
class LevelTraffic:
    """Bytes between two levels of the memory hierarchy in one run.

    Attributes:
        path: name of the two levels.
        bytes: of all stages.
        compulsory: ratio to the bytes of inputs and outputs.
        bandwidth_share: share of the bandwidth at the measured time; None if either is not known.
    """

    path: str
    bytes: float
    compulsory: float
    bandwidth_share: float | None


@dataclass(frozen=True)
class Difference:
    """A decision of two programs; an empty value stands for a program without this decision."""

    decision: str
    winner: tuple[int, ...]
    runner_up: tuple[int, ...]


@dataclass(frozen=True)
class RunnerUp:
    """The fastest other program.

    Attributes:
        latency_s: seconds of one run.
        drafted_s: the draft's estimate; None if its loops are not known.
        differences: decisions with another value.
    """

    sketch: str
    latency_s: float
    drafted_s: float | None
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class SketchTrials:
    """The trials of one sketch.

    Attributes:
        name: of the sketch.
        structure: of its loops, see `structure_text`; "" if the sketch is not in the space.
        trials: measured programs.
        failed: programs among them that failed.
        best_s: seconds of the fastest one; None without a success.
    """

    name: str
    structure: str
    trials: int
    failed: int
    best_s: float | None


@dataclass(frozen=True)
class VariantTrials:
    """The trials of one definition of the function.

    Attributes:
        kind: "direct", or a form of minimal filtering.
        trials: measured programs.
        best_s: seconds of the fastest one; None without a success.
    """

    kind: str
    trials: int
    best_s: float | None


@dataclass(frozen=True)
class SearchSummary:
    """The trials of the winner's task, and of the other variants of the function.

    Attributes:
        sketches: with their trials, the fastest first.
        trials: measured programs.
        failures: failed programs by kind.
        best_trial: number of the fastest trial, from 1; None without a success.
        last_trials: number of the last trials whose gain is known.
        last_gain: share of its time that the best program lost in them; None if there was none.
        hosts: machines that measured.
        variants: all definitions of the function with records.
    """

    sketches: tuple[SketchTrials, ...]
    trials: int
    failures: Mapping[str, int]
    best_trial: int | None
    last_trials: int
    last_gain: float | None
    hosts: tuple[str, ...]
    variants: tuple[VariantTrials, ...]
