"""`Backend`: all that depends on the kind of target, in one frozen object.

`ansor.targets.cpu.backend.CPU` and `ansor.targets.cuda.backend.CUDA` are the built-in backends.
`ansor.targets.registry` finds the backend of a target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import tvm
from tvm import tirx
from tvm.target import Target

from ansor.lowering.lower import lower
from ansor.program.dot_instructions import DotInstruction
from ansor.program.program import Program
from ansor.targets.machine import M
from ansor.targets.search import TargetSearch

Options = dict[str, Any]  # TVM's options of a target


@dataclass(frozen=True)
class TargetSyntax:
    """The text forms of targets of one kind.

    Attributes:
        options: TVM's options, from the options and the flags without a value that a user wrote.
            Raises ValueError for an unknown flag.
        check: raises ArgumentError or UnsupportedError for a target that cannot be tuned. The
            second argument is the target as the user wrote it.
        text: canonical JSON text of a target and a number of threads. It is equal in every process.
        check_here: raises UnsupportedError if this machine cannot run programs for the target.
        shorthands: names that stand for the target of this machine, with their options.
    """

    options: Callable[[Options, Sequence[str]], Options]
    check: Callable[[Target, object], None]
    text: Callable[[Target, int], str]
    check_here: Callable[[Target], None]
    shorthands: Mapping[str, Callable[[], Options]] = field(default_factory=dict)


def nothing_known(target: Target) -> None:
    """No parameters of other machines."""
    return


@dataclass(frozen=True)
class MachineReader(Generic[M]):
    """Reads the parameters of the machine that a target and a number of threads name.

    Attributes:
        read: takes no measurements.
        detect: also measures, once per machine, parameters that cannot be read.
        peak_flops: floating-point operations per second in float32; None if it cannot be measured.
        describe: the parameters by name, as text with units.
        known: the parameters of a machine that is not this one; None if they are not known, or if
            this machine runs the target's programs.
        elsewhere: the parameters of another machine. The third argument reads its files and runs
            the micro-benchmark on it. None for kinds of targets that only this machine can tune.
    """

    read: Callable[[Target, int], M]
    detect: Callable[[Target, int], M]
    peak_flops: Callable[[Target, int], float | None]
    describe: Callable[[M], Mapping[str, str]]
    known: Callable[[Target], M | None] = nothing_known
    elsewhere: Callable[[Target, int, Any], M] | None = None


def unchanged(mod: tvm.IRModule, target: Target, threads: int | None = None) -> tvm.IRModule:
    """The unchanged module."""
    return mod


def no_variables() -> dict[str, str]:
    """No variables of the environment."""
    return {}


@dataclass(frozen=True)
class Compiler:
    """Turns scheduled functions into machine code.

    Attributes:
        target: the target that TVM's code generator receives.
        prepare: rewrites scheduled functions for a number of threads, by default those of this
            process.
        portable: the part of `prepare` after which TVM's default pipeline does the rest.
        default_schedule: schedules the functions of a network that have no program.
        pipeline: name of TVM's pipeline of passes for the functions.
        variables: the environment of a process that compiles.
    """

    target: Callable[[Target], Target]
    prepare: Callable[[tvm.IRModule, Target, int | None], tvm.IRModule] = unchanged
    portable: Callable[[tvm.IRModule, Target, int | None], tvm.IRModule] = unchanged
    default_schedule: Callable[[tvm.IRModule, Target], tvm.IRModule] = unchanged
    pipeline: str = "default"
    variables: Callable[[], dict[str, str]] = no_variables


def no_short_products(target: Target, dtype: str) -> str | None:
    """The reason of a kind of target that only multiplies in the network's own precision."""
    return f"networks for {target.kind.name} keep their own precision"


def own_activations(target: Target) -> None:
    """None: there is no dtype beside the network's own."""


def no_dot_instructions(target: Target) -> tuple[DotInstruction, ...]:
    """No instructions."""
    return ()


def no_conversions(machine: object, elements: int) -> float:
    """Infinite: a kind of target without short products converts nothing."""
    return math.inf


@dataclass(frozen=True)
class NetworkForm:
    """The form of networks that suits a kind of target.

    Attributes:
        wide_sums: products in half precision are summed in float32.
        joins_depthwise: a depthwise convolution joins the pointwise convolution after it.
        filtering: convolutions may use minimal filtering (Winograd).
        why_not_short: why a target has no instruction for products of a dtype, such as "bfloat16";
            None if it has one.
        activations: dtype of 8 bits that a target multiplies by `int8` in products and
            convolutions; None if both are equal.
        dot_instructions: the instructions of a target that add up groups of products.
        conversion_s: seconds in which a machine converts a number of elements between float32 and a
            dtype of two bytes, as a part of a function.
    """

    wide_sums: bool = False
    joins_depthwise: bool = False
    filtering: bool = False
    why_not_short: Callable[[Target, str], str | None] = no_short_products
    activations: Callable[[Target], str | None] = own_activations
    dot_instructions: Callable[[Target], tuple[DotInstruction, ...]] = no_dot_instructions
    conversion_s: Callable[[Any, int], float] = no_conversions


def one_lane() -> list[dict[str, str]]:
    """One program at a time."""
    return [{}]


def exact_products(target: Target) -> frozenset[str]:
    """No dtype."""
    return frozenset()


@dataclass(frozen=True)
class Execution:
    """Execution and timing of programs of a kind of target.

    Attributes:
        on_host: kernels run in the calling process, on its threads and in its memory. Their timing
            then controls the caches, the memory and the other work of the host. Otherwise a device
            runs them: an error may disturb later kernels of the same process, and a forked process
            cannot use the device.
        lanes: environments of the workers that may time programs at the same time, such as one for
            each GPU.
        rounded_dtypes: dtypes whose products may have rounded operands.
    """

    on_host: bool
    lanes: Callable[[], list[dict[str, str]]] = one_lane
    rounded_dtypes: Callable[[Target], frozenset[str]] = exact_products


@dataclass(frozen=True)
class Backend(Generic[M]):
    """One kind of target.

    Attributes:
        kind: TVM's name of the kind.
        title: the plural of its name, for messages.
        home: "module:NAME" of this object. Worker processes import it from there.
        syntax: text forms of targets.
        machine: parameters of the machine.
        search: rules, annotation, limits and draft.
        compiler: machine code.
        execution: how programs run.
        network: the form of networks.
        lower: makes a scheduled function of a definition and a program.
    """

    kind: str
    title: str
    home: str
    syntax: TargetSyntax
    machine: MachineReader[M]
    search: TargetSearch[M]
    compiler: Compiler
    execution: Execution
    network: NetworkForm = field(default_factory=NetworkForm)
    lower: Callable[[tirx.PrimFunc, Program], tirx.PrimFunc] = lower
