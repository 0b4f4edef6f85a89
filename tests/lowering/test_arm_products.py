"""ARM's instructions for groups of products, by their machine code and in plain arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from definitions import HARDWARE
from sampling import sample
from tvm import te, tirx
from tvm.target import Target

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.lowering.lower import lower
from ansor.program.layout import packed_arrays
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.targets.build import compile_function, lowered_function
from ansor.targets.cpu.low_precision import activations, dot_instructions, prefers_narrow_weights
from ansor.targets.cpu.machine import DotUnit
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.target import resolve_target, target_text

CONFIG = SketchConfig(unroll_steps=(0,))
INSTRUCTIONS = {
    "sdot": ("int8", "int8"),
    "udot": ("uint8", "uint8"),
    "usdot": ("uint8", "int8"),
    "bfdot": ("bfloat16", "bfloat16"),
}
NEON = replace(
    HARDWARE,
    vector_bytes=16,
    dot_units=tuple(DotUnit(name, 2.0, 3.0) for name in INSTRUCTIONS),
)
ROWS, COLUMNS, DEPTH = 6, 24, 16
OLD, NEW = "cortex-a72", "neoverse-v1"


def arm(processor: str) -> dict[str, str]:
    return {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": processor}


def product(left: str, right: str) -> tirx.PrimFunc:
    a = te.placeholder((ROWS, DEPTH), left, "A")
    b = te.placeholder((DEPTH, COLUMNS), right, "B")
    k = te.reduce_axis((0, DEPTH), "k")
    wide = "float32" if left == "bfloat16" else "int32"
    c = te.compute(
        (ROWS, COLUMNS),
        lambda i, j: te.sum(a[i, k].astype(wide) * b[k, j].astype(wide), axis=k),
        "C",
    )
    return te.create_prim_func([a, b, c])


def a_program(func: tirx.PrimFunc) -> Program:
    """One whose vectors fill registers."""
    sketch = CPU_SEARCH.sketches(read_dag(func, (1,)), NEON, CONFIG)[0]
    drawn = sample(sketch, 256, np.random.default_rng(0))
    hole = next(d.name for d in sketch.decisions if d.name.endswith(".j"))
    allowed = legal(build_nest(drawn), NEON, CONFIG) & (drawn.values(hole)[:, -1] >= 4)
    return drawn.program(int(np.flatnonzero(allowed)[0]))


def random(dtype: str, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(1)
    if dtype == "bfloat16":
        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_machine_code_has_the_instruction_where_the_processor_does(name: str) -> None:
    func = product(*INSTRUCTIONS[name])
    scheduled = lower(func, a_program(func))
    for processor, present in ((NEW, True), (OLD, False)):
        text = json.dumps({**arm(processor), "num-cores": 2})
        code = str(lowered_function(scheduled, text).inspect_source("s"))
        issued = {line.split()[0] for line in code.splitlines() if line.strip()}
        assert (name in issued) == present
        assert "ansor_dot" not in code


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_plain_arithmetic_is_right(name: str) -> None:
    left, right = INSTRUCTIONS[name]
    func = product(left, right)
    program = a_program(func)
    a, b = random(left, (ROWS, DEPTH)), random(right, (DEPTH, COLUMNS))
    wide = np.float32 if name == "bfdot" else np.int32
    out = tvm.runtime.tensor(np.zeros((ROWS, COLUMNS), wide))
    arrays = packed_arrays(program, {"A": a, "B": b}).values()
    here = target_text(resolve_target("native"), 2)
    module: Any = compile_function(lower(func, program), here)
    module(*map(tvm.runtime.tensor, arrays), out)
    np.testing.assert_allclose(out.numpy(), a.astype(wide) @ b.astype(wide), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("processor", "instructions", "dtype"),
    [
        (NEW, {"bfdot", "sdot", "udot", "usdot"}, "int8"),
        ("neoverse-n1", {"sdot", "udot"}, "int8"),
        (OLD, set(), None),
    ],
)
def test_what_a_processor_has(processor: str, instructions: set[str], dtype: str | None) -> None:
    target = Target(arm(processor))
    assert {each.name for each in dot_instructions(target)} == instructions
    assert activations(target) == dtype
    assert not prefers_narrow_weights(target)
