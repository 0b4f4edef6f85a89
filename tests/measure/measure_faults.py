"""A lowering whose behaviour is the name of a program's sketch; workers load it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm
from tvm import te, tirx

from ansor.config import WORKERS
from ansor.program.program import Program
from ansor.targets.cpu.backend import CPU

SIZE = 32


def matmul(factor: float = 1.0, terms: int = SIZE, offset: int = 0) -> tirx.PrimFunc:
    """C = factor * A @ B, of `SIZE`; more `terms` take longer, an `offset` reads out of bounds."""
    a = te.placeholder((SIZE, SIZE), name="A")
    b = te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, terms), name="k")
    inner = k % SIZE if terms > SIZE else k

    def product(i: Any, j: Any) -> Any:
        return te.sum(a[i + offset, inner] * b[inner, j] * factor, axis=k)

    return te.create_prim_func([a, b, te.compute((SIZE, SIZE), product, name="C")])


def lowering(func: tirx.PrimFunc, program: Program) -> tirx.PrimFunc:
    """Misbehaves while lowering, or returns a function that does so later."""
    match program.sketch:
        case "sleep":
            time.sleep(1000)
        case "exit":
            os._exit(3)
        case "leave":
            start_compiler()
            os.abort()
        case "compiler":
            start_compiler()
        case "compiler and slow":
            start_compiler()
            return matmul(terms=SIZE * 10**7)  # minutes in machine code
        case "abort":
            os.write(2, b"last words\n")
            os.abort()
        case "raise":
            raise ValueError("no such loop\n\nsecond line")
        case "noise":
            os.write(1, b"\0" * 100_000)
            print("noise", flush=True)
        case "hoard":
            kept = [bytearray(64 << 20)]
            while kept:
                kept.append(bytearray(64 << 20))
        case "chatter":
            while True:
                os.write(1, b"\0" * 100_000)
        case "page":
            os.write(1, b"\0" * (WORKERS.log_bytes * 3 // 4))
        case "pid":
            threads = tvm.get_global_func("runtime.NumThreads")
            raise ValueError(f"pid={os.getpid()} threads={threads()}")
        case "lane":
            raise ValueError(f"lane={os.environ.get('LANE')}")
        case "wrong":
            return matmul(factor=1.01)
        case "slow":
            return matmul(terms=SIZE * 1000)
        case "endless":
            return matmul(terms=2**30)
        case "segfault":
            return matmul(offset=10**7)
        case "unbuildable":
            return func.with_attr("target", "nonsense")
    return func


def start_compiler() -> None:
    """Starts a process that would outlive the worker, and writes its id to a file."""
    compiler = subprocess.Popen(["sleep", "1000"])
    Path(os.environ["COMPILER"]).write_text(str(compiler.pid))


def delayed(seconds: float, value: int) -> tuple[int, int]:
    """The value after a while, and the process that gives it."""
    time.sleep(seconds)
    return value, os.getpid()


def only_here(parent: int, fault: str) -> int:
    """The process that it runs in; with a fault, it succeeds in one alone."""
    if os.getpid() != parent and fault == "exit":
        os._exit(3)
    if os.getpid() != parent and fault == "hang":
        time.sleep(1000)
    return os.getpid()


FAULTY = replace(CPU, lower=lowering, home=f"{__name__}:FAULTY")
