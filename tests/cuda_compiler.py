"""Compiles CUDA programs without a GPU, and reads the compiler's report on their kernels."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import tirx

from ansor.errors import MeasureError
from ansor.targets.build import ENTRY, pass_context
from ansor.targets.cuda.compiler import find_nvcc

_PTXAS = "-v,--register-usage-level=10"  # as TVM has programs compiled that run
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


@dataclass(frozen=True)
class KernelUse:
    """The resources of a kernel in the compiler's report.

    Attributes:
        name: of the kernel.
        registers: of a thread.
        shared_bytes: of shared memory, of a block.
        stack_bytes: of memory that stands for registers, of a thread: arrays that could not be
            kept in registers.
        spill_bytes: stored because registers ran out, of a thread.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


def cuda_source(func: tirx.PrimFunc, target: str) -> str:
    """The CUDA source of a scheduled function, all of its kernels."""
    module = tvm.IRModule({ENTRY: func.with_attr("global_symbol", ENTRY)})
    with pass_context([func]):
        compiled = tvm.compile(module, tvm.target.Target(target)).mod
    return str(compiled.imports[0].inspect_source())


def compile_source(source: str, arch: str) -> list[KernelUse]:
    """Compiles CUDA source to machine code, which is thrown away.

    Raises:
        MeasureError: there is no compiler, or it rejects the source.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source)
        out = Path(folder) / "kernel.cubin"
        flags = ["-cubin", f"-arch={arch}", "-O3", f"-Xptxas={_PTXAS}", "-o", str(out)]
        done = subprocess.run(
            [find_nvcc(), *flags, str(path)], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).split())
        raise MeasureError(f"compiler nvcc for {arch}: {reason}", "see the source")
    return _uses(done.stderr + done.stdout)


def _uses(log: str) -> list[KernelUse]:
    """Reads what ptxas says under ``-v``, kernel by kernel."""
    parts = _ENTRY.split(log)[1:]
    return [_use(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _use(name: str, text: str) -> KernelUse:
    spill, used = _SPILL.search(text), _USED.search(text)
    if spill is None or used is None:
        raise MeasureError(
            f"what nvcc says of kernel {name} is not understood: {text[:200]}", "read it"
        )
    stack, stores, _ = map(int, spill.groups())
    return KernelUse(name, int(used.group(1)), int(used.group(2) or 0), stack, stores)
