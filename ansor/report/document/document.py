"""`Document`: everything that a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.report.document.comparison_data import ComparisonData
from ansor.report.document.search_data import MachineFigures


@dataclass(frozen=True)
class FunctionRow:
    """One function of the network, or one task of a database.

    Attributes:
        name: of the function.
        calls: per run of the network; None in a database.
        latency_s: seconds per call; None if it was not timed.
        total_s: seconds of all calls in one run of the network; None as above.
        share: of `total_s` in the sum over all functions, 0 to 1.
        flops: floating-point operations per call; None if they are not known.
        moved_bytes: bytes of all arguments and results, which a call moves at least; None if they
            are not known.
        rate: operations per second.
        peak_share: `rate` over the machine's peak, 0 to 1 or a little more.
        speedup: over the untuned definition.
        margin: additional time of the runner-up, as a share of the latency.
        spread: distance between the quartiles of the winner's turns, as a share of its latency.
        trials: measured programs.
        failed: of these, the failures.
        variant: kind of the definition.
        sketch: name of the winner's sketch.
        difference: largest error over the largest value of the reference.
        note: what went wrong; "" if nothing did.
    """

    name: str
    calls: int | None
    latency_s: float | None
    total_s: float | None
    share: float | None
    flops: int | None = None
    moved_bytes: int | None = None
    rate: float | None = None
    peak_share: float | None = None
    speedup: float | None = None
    margin: float | None = None
    spread: float | None = None
    trials: int = 0
    failed: int = 0
    variant: str = ""
    sketch: str = ""
    difference: float | None = None
    note: str = ""

    @property
    def intensity(self) -> float | None:
        """Operations per byte that is moved; None without either."""
        return self.flops / self.moved_bytes if self.flops and self.moved_bytes else None


@dataclass(frozen=True)
class CurvePoint:
    """The best latency after some of the trials.

    Attributes:
        trials: measured programs until then.
        elapsed_s: seconds since the run began.
        best_s: seconds of the best program, or of the network, the sum of its functions.
    """

    trials: int
    elapsed_s: float
    best_s: float


@dataclass(frozen=True)
class Prediction:
    """Expected and measured seconds of one program."""

    function: str
    expected_s: float
    measured_s: float


@dataclass(frozen=True)
class FailureCount:
    """Programs of a function that failed in the same way, and the text of the first failure."""

    function: str
    kind: str
    count: int
    message: str


@dataclass(frozen=True)
class ProgramText:
    """The winning program of a function.

    Attributes:
        function: its name.
        loops: the loop nest.
        language: "pseudo code", or "TensorIR" for the scheduled function.
        assembly: machine code of the hottest part; "" if there is none.
        assembly_note: which part of the machine code it is.
    """

    function: str
    loops: str
    language: str
    assembly: str = ""
    assembly_note: str = ""


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: the name of the network or of the file.
        latency_s: measured seconds of one run of the network.
        functions_s: sum of its functions.
        trials: measured programs.
        search_s: seconds of the search.
        reason: why the search stopped.
        comparison: with peers.
        machine: limits of the machine.
        functions: those with the largest share of the time first.
        network_curve: best latency of the network during the search.
        function_curves: best latency of each function, by its name.
        predictions: of successful measurements, in the order of the search.
        ordered_share: of the pairs of programs of one function, those whose order the cost model
            expected, 0 to 1; None without a pair.
        failures: by function and kind.
        programs: winning programs, in the order of `functions`.
        checks: comparisons with the original model.
        environment: versions and settings by name.
        absent: by the name of a field without data, one sentence on how to get them.
    """

    title: str
    latency_s: float | None = None
    functions_s: float | None = None
    trials: int | None = None
    search_s: float | None = None
    reason: str = ""
    comparison: ComparisonData | None = None
    machine: MachineFigures | None = None
    functions: tuple[FunctionRow, ...] = ()
    network_curve: tuple[CurvePoint, ...] = ()
    function_curves: Mapping[str, tuple[CurvePoint, ...]] = field(default_factory=dict)
    predictions: tuple[Prediction, ...] = ()
    ordered_share: float | None = None
    failures: tuple[FailureCount, ...] = ()
    programs: tuple[ProgramText, ...] = ()
    checks: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
