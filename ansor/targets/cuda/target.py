"""CUDA targets: their options and their text."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm.target import Target

from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.backend import Options
from ansor.targets.cuda.machine import gpu_of, has_tf32
from ansor.targets.text import canonical, malformed

KIND = "cuda"
TF32 = "tf32"  # a key of a target: tensor cores may round operands in float32
_TF32_FLAGS = (f"-{TF32}", f"--{TF32}")
_KEYS = ("cuda", "gpu")  # that TVM gives the kind


def options_here() -> Options:
    """TVM's options for this machine's first GPU."""
    return {"kind": KIND, "arch": arch_here()}


def arch_here() -> str:
    """Architecture of this machine's first GPU.

    Raises:
        ArgumentError: there is none, or no driver.
    """
    device = tvm.runtime.cuda(0)
    if not device.exist:
        remedy = "no NVIDIA GPU with its driver is here; to compile for one, say cuda -arch=sm_NN"
        raise ArgumentError("target", KIND, remedy)
    return f"sm_{str(device.compute_version).replace('.', '')}"


def options(given: Options, flags: Sequence[str]) -> Options:
    """TVM's options; "-tf32" becomes a key.

    Raises:
        ValueError: another flag without a value.
    """
    unknown = [flag for flag in flags if flag not in _TF32_FLAGS]
    if unknown:
        raise malformed(unknown[0])
    if not flags:
        return given
    keys = [*given.get("keys", _KEYS), TF32]
    return {**given, "keys": keys, "arch": given.get("arch") or arch_here()}


def check(target: Target, given: object) -> None:
    """Raises an error for an unknown architecture, or tf32 of one without it."""
    arch = str(target.attrs["arch"])
    gpu_of(arch)
    if rounds_to_tf32(target) and not has_tf32(arch):
        remedy = f"tensor cores of {arch} know no tf32, those from sm_80 on do: leave it out"
        raise ArgumentError("target", str(given), remedy)


def rounds_to_tf32(target: Target) -> bool:
    """Whether products in float32 may be rounded to tf32, for tensor cores."""
    return TF32 in map(str, target.keys)


def rounded_dtypes(target: Target) -> frozenset[str]:
    """Dtypes whose products may have operands in tf32."""
    return frozenset({"float32"} if rounds_to_tf32(target) else ())


def text(target: Target, threads: int) -> str:
    """The architecture, and whether it rounds to tf32."""
    keys = {"keys": [*_KEYS, TF32]} if rounds_to_tf32(target) else {}
    return canonical({"kind": KIND, "arch": str(target.attrs["arch"]), **keys})


def check_here(target: Target) -> None:
    """Raises an UnsupportedError where there is no GPU of the target's architecture."""
    arch, device = str(target.attrs["arch"]), tvm.runtime.cuda(0)
    if not device.exist:
        raise UnsupportedError(
            f"target cuda, {arch}: no NVIDIA GPU with its driver is here",
            "tune on a machine with one",
        )
    here = arch_here()
    if here != arch.removesuffix("a"):
        raise UnsupportedError(
            f"target cuda, {arch}: the GPU of this machine is {here}",
            "leave -arch out, or tune on a machine with such a GPU",
        )
