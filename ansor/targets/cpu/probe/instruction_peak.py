"""Rates of instructions that add up products in low precision, measured on this machine.

A kernel repeats one instruction; each thread has its sums in its registers. Nothing else limits the
kernel, so that its rate is the peak of the instruction. The whole loop is in LLVM's language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import ir, tirx
from tvm.target import Target, codegen

from ansor.errors import ArgumentError
from ansor.targets.cpu.probe.instruction_kernels import (
    LOOPS,
    TILE_BYTES,
    TILE_SUMS,
    function_name,
)
from ansor.targets.cpu.probe.meter import Meter, Spec, seconds_meter
from ansor.targets.host.tiles import why_no_tiles

_ROUNDS = 1 << 15  # of a run: some 0.2 ms, much longer than the start of threads (10 µs)
_WORD_BYTES = 4
# By bytes of a register: AMD64 Architecture Programmer's Manual, volume 4; Arm's manual (DDI 0487).
_REGISTERS = {64: 32, 32: 16, 16: 32}
_OPERAND_REGISTERS = 4  # registers without sums


@dataclass(frozen=True)
class PeakInstruction:
    """An instruction that multiplies groups of elements and adds them to sums of 32 bits.

    Attributes:
        name: of the instruction in the processor's manual, in lower case.
        precision: of its operands, "bfloat16" or "int8".
        group: elements of either operand for one lane of a vector.
        features: sets of LLVM's features. Any one of them is enough.
        is_tiled: whether its registers are tiles of 16 rows of 64 bytes.
    """

    name: str
    precision: str
    group: int
    features: tuple[str, ...]
    is_tiled: bool = False

    def is_available(self, target: Target) -> bool:
        """Whether a target has the instruction."""
        return any(codegen.llvm_cpu_has_features(feature, target) for feature in self.features)

    def is_usable(self, target: Target) -> bool:
        """Whether a target, this machine, has the instruction, and this process may use it."""
        return self.is_available(target) and not (self.is_tiled and why_no_tiles())

    def operations(self, vector_bytes: int) -> int:
        """Multiplications and additions of one instruction on whole registers."""
        lanes = 16 * 16 * 16 if self.is_tiled else vector_bytes // _WORD_BYTES
        return 2 * self.group * lanes


INSTRUCTIONS = (  # the fastest of each precision first
    PeakInstruction("tdpbf16ps", "bfloat16", 2, ("amx-bf16",), is_tiled=True),
    PeakInstruction("vdpbf16ps", "bfloat16", 2, ("avx512bf16",)),
    PeakInstruction("tdpbusd", "int8", 4, ("amx-int8",), is_tiled=True),
    PeakInstruction("vpdpbusd", "int8", 4, ("avx512vnni", "avxvnni")),
    PeakInstruction("vpmaddubsw", "int8", 4, ("avx2",)),
    PeakInstruction("vpmaddwd", "int8", 4, ("avx2",)),
    PeakInstruction("bfdot", "bfloat16", 2, ("bf16",)),
    PeakInstruction("sdot", "int8", 4, ("dotprod",)),
    PeakInstruction("udot", "int8", 4, ("dotprod",)),
    PeakInstruction("usdot", "int8", 4, ("i8mm",)),
)


def fastest_instruction(target: Target, precision: str) -> PeakInstruction | None:
    """The fastest instruction of a precision that a target has and this process may use.

    Args:
        target: a CPU target: this machine.
        precision: "bfloat16" or "int8".
    """
    for instruction in INSTRUCTIONS:
        if instruction.precision == precision and instruction.is_usable(target):
            return instruction
    return None


def instruction_named(name: str) -> PeakInstruction:
    """The instruction of that name.

    Raises:
        ArgumentError: there is no kernel for it.
    """
    known = {each.name: each for each in INSTRUCTIONS}
    if name not in known:
        raise ArgumentError("instruction", name, f"give one of {', '.join(known)}")
    return known[name]


def operations_meter(
    instruction: PeakInstruction, spec: Spec, meter: Meter = seconds_meter
) -> Callable[[], float]:
    """A function that measures the current operations per second of all threads of `spec`.

    The pool of threads must have its size already. The machine must have the instruction.
    """
    module = peak_kernel(instruction, spec.threads, spec.vector_bytes, _ROUNDS)
    best_s = meter(module, spec.target, 3)
    issued = spec.threads * _ROUNDS * _sums(instruction, spec.vector_bytes)
    return lambda: issued * instruction.operations(spec.vector_bytes) / best_s()


def peak_kernel(
    instruction: PeakInstruction, threads: int, vector_bytes: int, rounds: int
) -> tvm.IRModule:
    """A function of memory `[threads, floats] float32` with operands and sums.

    Each thread reads its row, issues the instruction `rounds` times on each of its sums, and writes
    the sums back.
    """
    sums, size = _sums(instruction, vector_bytes), _register_bytes(instruction, vector_bytes)
    floats = (sums + _OPERAND_REGISTERS) * size // _WORD_BYTES
    memory = tirx.decl_buffer((threads, floats), "float32", name="memory")
    thread = tirx.Var("thread", "int32")
    zero, count = tirx.const(0, "int32"), tirx.const(threads, "int32")
    row = tirx.address_of(tirx.BufferLoad(memory, [thread, zero]))
    name = function_name(instruction.name)
    call = tirx.call_extern("void", name, row, tirx.const(rounds, "int64"))
    loop = tirx.For(thread, zero, count, tirx.ForKind.PARALLEL, tirx.Evaluate(call))
    text = LOOPS[instruction.name](instruction.name, size, sums)
    body = tirx.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(text), loop)
    func = tirx.PrimFunc([memory], body)
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


def _sums(instruction: PeakInstruction, vector_bytes: int) -> int:
    """Registers of sums: enough that no instruction waits for an earlier one."""
    return TILE_SUMS if instruction.is_tiled else _REGISTERS[vector_bytes] - _OPERAND_REGISTERS


def _register_bytes(instruction: PeakInstruction, vector_bytes: int) -> int:
    return TILE_BYTES if instruction.is_tiled else vector_bytes
