"""What LLVM makes of a program, for a processor that need not be this one."""

from __future__ import annotations

import json
import re

from tvm import tirx

from ansor.lowering.lower import lower
from ansor.program.program import Program
from ansor.targets.build import compile_function


def compiled(func: tirx.PrimFunc, program: Program, processor: str, form: str = "s") -> str:
    """Its code as text: assembly ("s"), or LLVM's own language ("ll")."""
    target = json.dumps({"kind": "llvm", "mcpu": processor, "num-cores": 2})
    return str(compile_function(lower(func, program), target).inspect_source(form))


def hottest_block(func: tirx.PrimFunc, program: Program, processor: str) -> str:
    """Assembly of the block without jumps that has the most multiply-adds."""
    code = compiled(func, program, processor)
    blocks = re.split(r"^\.?\w+:$|^\s+j\w+\s.*$", code, flags=re.MULTILINE)
    return max(blocks, key=lambda lines: lines.count("vfmadd"))
