"""Loops over one instruction: they have its results, and contain no other work."""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import tvm
from tvm.target import Target, codegen

from ansor.errors import ArgumentError
from ansor.targets.cpu.probe import instruction_peak
from ansor.targets.cpu.probe.instruction_peak import (
    INSTRUCTIONS,
    PeakInstruction,
    fastest_instruction,
    instruction_named,
    operations_meter,
    peak_kernel,
)
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.target import resolve_target

ARM = ("bfdot", "sdot", "udot", "usdot")
VECTORS = [each.name for each in INSTRUCTIONS if not each.is_tiled and each.name not in ARM]
TILED = [each.name for each in INSTRUCTIONS if each.is_tiled]
NEWEST = Target({"kind": "llvm", "mcpu": "sapphirerapids"})
# What else is issued where a step is more than an instruction.
STEPS = {
    "vpmaddubsw": ("vmovdqa", "vmovdqu", "vpmaddwd", "vpaddd"),
    "vpmaddwd": ("vmovdqa", "vmovdqu", "vpaddd"),
}
HASWELL = Target({"kind": "llvm", "mcpu": "haswell"})
THREADS, ROUNDS = 2, 5
# The operands of each instruction, and the value that it adds to a lane.
OPERANDS = {
    "vdpbf16ps": (np.array(1.5, ml_dtypes.bfloat16), np.array(-2, ml_dtypes.bfloat16), -6.0),
    "vpdpbusd": (np.uint8(200), np.int8(-100), -80000),
    "vpmaddubsw": (np.uint8(100), np.int8(-100), -40000),
    "vpmaddwd": (np.int16(200), np.int16(-100), -80000),
}


def usable(instruction: PeakInstruction, vector_bytes: int) -> bool:
    """Whether this machine has the instruction on registers of `vector_bytes` bytes."""
    target = resolve_target("native")
    wide = {64: "avx512bw", 32: "avx2"}[vector_bytes]
    needed = (wide,) if instruction.name in STEPS else (wide, "avx512vl")
    has_all = all(codegen.llvm_cpu_has_features(f, target) for f in needed)
    return has_all and any(codegen.llvm_cpu_has_features(f, target) for f in instruction.features)


def filled(size: int, floats: int, name: str) -> npt.NDArray[np.float32]:
    """Memory of a thread: sums that count from 1, then both operands."""
    left, right, _ = OPERANDS[name]
    dtype = np.float32 if name == "vdpbf16ps" else np.int32
    row = np.zeros(4 * floats, np.uint8)
    sums = 4 * floats // size - 4
    row[: sums * size].view(dtype)[:] = np.arange(1, sums * size // 4 + 1)
    for number, operand in enumerate((left, right)):
        at = (sums + number) * size
        row[at : at + size].view(operand.dtype)[:] = operand
    return row.view(np.float32)


@pytest.mark.parametrize("vector_bytes", [32, 64])
@pytest.mark.parametrize("name", VECTORS)
def test_every_sum_gets_its_products(name: str, vector_bytes: int) -> None:
    if not usable(instruction_named(name), vector_bytes):
        pytest.skip(f"no {name} of {vector_bytes} bytes here")
    module = peak_kernel(instruction_named(name), THREADS, vector_bytes, ROUNDS)
    (buffer,) = module["main"].params
    row = filled(vector_bytes, int(buffer.shape[1]), name)
    memory = tvm.runtime.tensor(np.stack([row] * THREADS))
    tvm.compile(module, resolve_target("native"))["main"](memory)
    dtype = np.float32 if name == "vdpbf16ps" else np.int32
    sums = len(row) - 4 * vector_bytes // 4
    expected = np.arange(1, sums + 1) + ROUNDS * OPERANDS[name][2]
    for found in memory.numpy():
        assert (found[:sums].view(dtype) == expected).all()
        assert (found[sums:].view("u4") == row[sums:].view("u4")).all()  # operands stay


@pytest.mark.parametrize("name", [*VECTORS, *TILED])
def test_a_round_is_one_instruction_for_each_sum(name: str) -> None:
    old = name in STEPS
    module = peak_kernel(instruction_named(name), 1, 32 if old else 64, 1 << 20)
    text = tvm.compile(module, HASWELL if old else NEWEST).mod.inspect_source("asm")
    blocks = re.split(r"^\.?\w+:$|^\s+j\w+\s.*$", text, flags=re.MULTILINE)
    loop = max(blocks, key=lambda lines: lines.count(name)).splitlines()
    issued = [line.split()[0] for line in loop if "mm" in line]  # what uses registers of sums
    sums = 4 if name in TILED else 12 if old else 28
    assert issued.count(name) % sums == 0  # the loop may be unrolled
    assert set(issued) <= {name, *STEPS.get(name, ())}


@pytest.mark.parametrize("name", ARM)
def test_a_round_on_arm_is_one_instruction_for_each_sum(name: str) -> None:
    target = Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v1"})
    module = peak_kernel(instruction_named(name), 1, 16, 1 << 20)
    text = tvm.compile(module, target).mod.inspect_source("asm")
    issued = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert issued.count(name) > 0
    assert issued.count(name) % 28 == 0  # the loop may be unrolled


def test_operations_are_counted() -> None:
    counts = {each.name: each.operations(64) for each in INSTRUCTIONS}
    assert counts["vdpbf16ps"] == 2 * 32  # elements of a register
    assert counts["vpdpbusd"] == counts["vpmaddubsw"] == counts["vpmaddwd"] == 2 * 64
    assert counts["tdpbf16ps"] == 2 * 16 * 16 * 32
    assert counts["tdpbusd"] == 2 * 16 * 16 * 64


def test_the_rate_is_operations_over_seconds() -> None:
    asked = []

    def meter(module: tvm.IRModule, target: str, number: int) -> Callable[[], float]:
        asked.append(([int(n) for n in module["main"].params[0].shape], target))
        return lambda: 0.5

    spec = Spec("llvm", 3, 64, (1, 1, 1))
    rate = operations_meter(instruction_named("vpdpbusd"), spec, meter)()
    assert rate == 3 * (1 << 15) * 28 * 128 / 0.5
    assert asked == [([3, 32 * 16], "llvm")]


@pytest.mark.parametrize(
    ("processor", "allowed", "expected"),
    [
        ("sapphirerapids", True, ("tdpbf16ps", "tdpbusd")),
        ("sapphirerapids", False, ("vdpbf16ps", "vpdpbusd")),
        ("znver4", True, ("vdpbf16ps", "vpdpbusd")),
        ("alderlake", True, (None, "vpdpbusd")),
        ("znver1", True, (None, "vpmaddubsw")),
        ("nehalem", True, (None, None)),
    ],
)
def test_the_fastest_instruction_of_a_processor(
    processor: str, allowed: bool, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = None if allowed else "refused"
    monkeypatch.setattr(instruction_peak, "why_no_tiles", lambda: refused)
    target = Target({"kind": "llvm", "mcpu": processor})
    found = [fastest_instruction(target, precision) for precision in ("bfloat16", "int8")]
    assert tuple(each and each.name for each in found) == expected


def test_an_unknown_instruction_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"instruction='mulps'.*vdpbf16ps"):
        instruction_named("mulps")
