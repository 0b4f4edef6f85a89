"""`SearchData`: the data of a search for a report, beyond the tuned network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SEARCH_FILE = "search.json"


@dataclass(frozen=True)
class Trial:
    """One measured program.

    Attributes:
        task: key of the task.
        elapsed_s: seconds from the begin of the run to the end of the program's round.
        expected_s: seconds that the cost model expected before the measurement; None if it could
            not score the program.
        latency_s: measured seconds of one run; None if the program failed.
        error: kind of the failure; None for a success.
        message: the first lines of the error's text.
    """

    task: str
    elapsed_s: float
    expected_s: float | None
    latency_s: float | None
    error: str | None = None
    message: str = ""


@dataclass(frozen=True)
class MachineFigures:
    """Limits of the machine that runs the programs.

    Attributes:
        name: of the processor or GPU.
        peak_flops: operations per second in float32; None if it is not known.
        memory_bandwidth: bytes per second; None if it is not known.
        properties: further parameters by name, as text with units.
    """

    name: str
    peak_flops: float | None
    memory_bandwidth: float | None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SearchData:
    """One search of one network.

    Attributes:
        name: of the network; "" if it has none.
        machine: limits of the machine.
        trials: measured programs of the network's tasks, in the order of their measurement.
        functions: the function of the network that each task belongs to, by the key of the task.
        compiled: name of each function in the compiled network, which tells variants apart.
        loops: the winning program of each function as pseudo code.
        reason: why the search stopped; "" before its end.
        elapsed_s: seconds of the search.
        latency_s: measured seconds of one run of the tuned network; None if it was not timed.
        environment: versions and settings by name.
    """

    machine: MachineFigures
    trials: tuple[Trial, ...]
    functions: Mapping[str, str]
    compiled: Mapping[str, str]
    loops: Mapping[str, str]
    name: str = ""
    reason: str = ""
    elapsed_s: float = 0.0
    latency_s: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
