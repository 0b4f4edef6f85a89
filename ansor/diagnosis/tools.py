"""Findings about compilers, emulators and GPUs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import tvm
from tvm.target import codegen

from ansor.diagnosis.finding import Finding, State
from ansor.errors import MeasureError
from ansor.targets.cuda.compiler import find_nvcc

_TIMEOUT_S = 10.0  # a compiler tells its version in milliseconds


def tool_findings() -> Iterator[Finding]:
    """LLVM inside TVM, compilers, an emulator and a GPU."""
    yield _llvm()
    yield program_finding("g++", "exported networks need it for their program in C++")
    yield program_finding("aarch64-linux-gnu-g++", "tests of exported networks for Arm need it")
    yield program_finding("qemu-aarch64", "tests of networks for Arm need it")
    device = tvm.runtime.cuda(0)
    if device.exist:
        yield Finding("GPU", str(device.device_name))
    else:
        yield Finding("GPU", "none that TVM can use", State.NOTE)
    yield _nvcc()


def program_finding(name: str, purpose: str) -> Finding:
    """A program on the path, with its first line of version text."""
    path = shutil.which(name)
    if path is None:
        return Finding(name, "not installed", State.NOTE, f"install it if needed: {purpose}")
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name, f"{path} fails: {error}", State.WRONG, f"repair it: {purpose}")
    return Finding(name, done.stdout.partition("\n")[0])


def _llvm() -> Finding:
    if not tvm.runtime.enabled("llvm"):
        remedy = "pip install the pinned apache-tvm, which has LLVM"
        return Finding("LLVM", "TVM was built without it", State.WRONG, remedy)
    return Finding("LLVM", f"{codegen.llvm_version_major()}, inside TVM")


def _nvcc() -> Finding:
    try:
        return Finding("nvcc", find_nvcc())
    except MeasureError as error:
        return Finding("nvcc", "not installed", State.NOTE, f"only for GPUs: {error}")
