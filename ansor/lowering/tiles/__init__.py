"""Functions in LLVM's language that load, multiply and store tiles of registers (AMX).

Where the target has such registers, each function is one instruction (`native`). Elsewhere it works
on an array of eight tiles in memory and computes the same (`plain`), so a program is right on every
processor. The signatures of the intrinsics are those of LLVM's `IntrinsicsX86.td`.
"""
