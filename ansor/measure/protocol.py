"""The messages between the parent and a worker: one request, one reply, in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansor.config import MeasureConfig
from ansor.measure.call_plan import CallPlan
from ansor.measure.remote_program import Library, Server
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.task import Converted


@dataclass(frozen=True)
class Setup:
    """First message. `backend` names the `Backend` of all tasks, as "module:NAME".

    `memory_bytes` limits the data of the worker; None is no limit. Programs are timed in this
    process if they are timed `here`.
    """

    config: MeasureConfig
    backend: str
    memory_bytes: int | None = None
    here: bool = True


@dataclass(frozen=True)
class Define:
    """A task, sent once to each worker.

    Attributes:
        key: of the task.
        func_json: the function as TVM's JSON.
        target: text of the TVM target.
        constants: positions of the parameters that are weights.
        in_network: whether the task is timed as a part of a network.
        original: the function that this one is a variant of, None for none.
        by_hand: the schedule that a user wrote (`pickled_schedule`), None for none.
    """

    key: str
    func_json: str
    target: str
    constants: tuple[int, ...] = ()
    in_network: bool = False
    original: DefineOriginal | None = None
    by_hand: bytes | None = None


@dataclass(frozen=True)
class DefineOriginal:
    """The definition that results are compared with, and the number of its converted array."""

    func_json: str
    converted: Converted | None = None


@dataclass(frozen=True)
class Build:
    """Lower and compile a program of a task and keep it as `slot`."""

    key: str
    slot: int
    program: Program


@dataclass(frozen=True)
class Time:
    """Time `slot` and drop it. A program that is slower than `best_s` has fewer runs; infinite for
    none. Value: a `Timing`."""

    slot: int
    best_s: float


@dataclass(frozen=True)
class Compare:
    """Time slots one after the other, and drop them unless `keep`. Value: a `Timing` of
    each."""

    slots: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class Rehearse:
    """Time kept programs in the run of a network, and drop them. Value: seconds of each slot.

    `candidates` lists the slots of the functions. The plan runs for `seconds`, without functions
    that have no slot.
    """

    plan: CallPlan
    candidates: Mapping[str, tuple[int, ...]]
    seconds: float


@dataclass(frozen=True)
class Verify:
    """Build a program and compare it with the reference in float64. Value: relative difference."""

    key: str
    program: Program


@dataclass(frozen=True)
class Call:
    """Call a function, known by its module and name. Value: its result."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]


class RemoteRequest:
    """A request of a device behind TVM's RPC (`ansor.measure.rpc`)."""


@dataclass(frozen=True)
class Export(RemoteRequest):
    """Lower and compile a program of a task. Value: a `Library`.

    Attributes:
        linker: see `ansor.targets.library.deployable`.
    """

    key: str
    program: Program
    linker: str | None = None


@dataclass(frozen=True)
class Connect(RemoteRequest):
    """Open a session with a server.

    Attributes:
        seconds: after which the server ends it.
        threads: of the programs.
        watch: reference that shows whether the server is disturbed.
    """

    server: Server
    seconds: float
    threads: int
    watch: Library | None = None


@dataclass(frozen=True)
class TimeThere(RemoteRequest):
    """Time a library on the server, as `Time`; with `cold` weights in a network. Value: a
    `Timing`."""

    library: Library
    best_s: float
    cold: bool


@dataclass(frozen=True)
class CompareThere(RemoteRequest):
    """Time libraries in turns on the server, `rounds` times each, or fewer after `seconds`.
    Value: the `InTurns` of each, None for a failure."""

    libraries: tuple[Library, ...]
    rounds: int
    seconds: float
    cold: bool


@dataclass(frozen=True)
class Prepare(RemoteRequest):
    """Build a program and compute the reference for `VerifyThere`; keep both as `slot`."""

    key: str
    slot: int
    program: Program
    linker: str | None = None


@dataclass(frozen=True)
class VerifyThere(RemoteRequest):
    """Run the kept `slot` on the server, compare the results, and end the session. Value: relative
    difference."""

    slot: int


@dataclass(frozen=True)
class CallThere(RemoteRequest):
    """Call a function with the session and further arguments. Value: its result."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]


Request = Setup | Define | Build | Time | Compare | Rehearse | Verify | Call | RemoteRequest


@dataclass(frozen=True)
class Reply:
    """A worker's answer: a `value` that depends on the request, or an `error`."""

    value: object = None
    error: ErrorKind | None = None
    message: str = ""
    seconds: float = 0.0
