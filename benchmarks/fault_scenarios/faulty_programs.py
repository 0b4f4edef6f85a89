"""A template whose programs have a number; some of them are bad, in building or when they run."""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tvm import ir, te, tirx

import ansor
from ansor.measure.result import ErrorKind

SIZE = 64  # of the product of matrices
BAD_OF = 5  # one of so many programs is bad
_ENDLESS = 1 << 28  # terms of each sum: minutes of one core. TVM does not compile 1 << 30.
_CHUNK_BYTES = 16 << 20
_OUTSIDE = 10**7  # rows
_FAILURE = 3  # exit code


class Fault(enum.Enum):
    """The fault of a program, and its place."""

    SEGFAULT = "segmentation fault"
    EXIT_IN_BUILD = "exit in building"
    HANG = "endless loop"
    HANG_IN_BUILD = "endless building"
    PRINT = "endless output"
    PRINT_IN_BUILD = "endless output in building"
    ALLOCATE = "endless allocation"
    ALLOCATE_IN_BUILD = "endless allocation in building"
    RAISE = "error of the code generator"
    RAISE_IN_RUN = "exception"
    WRONG = "wrong result"


# How a record shows a fault. A wrong result shows only if the program might win.
KINDS: Mapping[Fault, ErrorKind | None] = MappingProxyType(
    {
        Fault.SEGFAULT: ErrorKind.CRASH,
        Fault.EXIT_IN_BUILD: ErrorKind.CRASH,
        Fault.HANG: ErrorKind.TIMEOUT,
        Fault.HANG_IN_BUILD: ErrorKind.TIMEOUT,
        Fault.PRINT: ErrorKind.TIMEOUT,
        Fault.PRINT_IN_BUILD: ErrorKind.LOWER,
        Fault.ALLOCATE: ErrorKind.CRASH,  # it writes to the null pointer that it gets
        Fault.ALLOCATE_IN_BUILD: ErrorKind.LOWER,
        Fault.RAISE: ErrorKind.BUILD,
        Fault.RAISE_IN_RUN: ErrorKind.RUN,
        Fault.WRONG: None,
    }
)


def fault_of(number: int) -> Fault | None:
    """The fault of a program; None for a good one. The first program is good."""
    faults = list(Fault)
    turn, rest = divmod(number, BAD_OF)
    return faults[turn % len(faults)] if rest == BAD_OF - 1 else None


@ansor.template("faulty")
def faulty(cfg: Any, count: int) -> Any:
    """A product of matrices with `count` programs."""
    number = cfg.knob("number", range(count))
    fault = fault_of(number)
    if fault in _IN_BUILD:
        _IN_BUILD[fault]()
    if fault in _IN_RUN:
        return te.create_prim_func(_product(_IN_RUN[fault], _ENDLESS))
    if fault is Fault.HANG:
        return te.create_prim_func(_product(terms=_ENDLESS))
    if fault is Fault.SEGFAULT:
        return te.create_prim_func(_product(offset=_OUTSIDE))
    if fault is Fault.RAISE:
        return te.create_prim_func(_product()).with_attr("target", "nonsense")
    sch = cfg.schedule(_product(factor=1.01 if fault is Fault.WRONG else 1.0))
    y, x, _ = sch.get_loops(sch.get_sblock("C"))
    sch.split(y, [None, 1 + number % SIZE])
    sch.split(x, [None, 1 + number // SIZE % SIZE])
    return sch


def _product(
    term: Callable[[], Any] | None = None,
    terms: int = SIZE,
    factor: float = 1.0,
    offset: int = 0,
) -> list[te.Tensor]:
    """The tensors of the definition, or of a bad function with the same parameters."""
    a = te.placeholder((SIZE, SIZE), name="A")
    b = te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, terms), name="k")

    def element(i: Any, j: Any) -> Any:
        product = a[i + offset, k % SIZE] * b[k % SIZE, j] * factor
        return te.sum(product if term is None else product + term(), axis=k)

    return [a, b, te.compute((SIZE, SIZE), element, name="C")]


def _print() -> Any:
    text = ir.StringImm("a line that a program prints without end " * 100)
    return tirx.call_extern("int32", "puts", text).astype("float32")


def _allocate() -> Any:
    memory = tirx.call_extern("handle", "malloc", tirx.const(_CHUNK_BYTES, "int64"))
    size = tirx.const(_CHUNK_BYTES, "int64")
    address = tirx.call_extern("int64", "memfrob", memory, size)
    return (address % 2).astype("float32")


def _sleep() -> None:
    time.sleep(_ENDLESS)


def _print_here() -> None:
    while True:
        os.write(1, b"a line that a schedule prints without end\n" * 1000)


def _allocate_here() -> None:
    kept = [b""]
    while kept:
        kept.append(b"\1" * _CHUNK_BYTES)


def _exit() -> None:
    os._exit(_FAILURE)


_IN_BUILD: Mapping[Any, Callable[[], None]] = MappingProxyType(
    {
        Fault.EXIT_IN_BUILD: _exit,
        Fault.HANG_IN_BUILD: _sleep,
        Fault.PRINT_IN_BUILD: _print_here,
        Fault.ALLOCATE_IN_BUILD: _allocate_here,
    }
)
_IN_RUN: Mapping[Any, Callable[[], Any]] = MappingProxyType(
    {
        Fault.PRINT: _print,
        Fault.ALLOCATE: _allocate,
        Fault.RAISE_IN_RUN: lambda: tirx.call_packed("no.such.function").astype("float32"),
    }
)
