"""Products of 8-bit integers by `vpmaddubsw` and `vpmaddwd`: exact for all values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import HARDWARE
from machine_code import compiled
from sampling import sample
from tvm import te, tirx

from ansor.config import SketchConfig
from ansor.dag.from_tir.narrow import is_narrow, with_narrow
from ansor.dag.from_tir.read import read_dag
from ansor.errors import LoweringError, UnsupportedError
from ansor.features.legality import legal
from ansor.lowering.lower import lower
from ansor.program.layout import packed_arrays
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.steps import DotProducts
from ansor.targets.build import compile_function
from ansor.targets.cpu.machine import DotUnit
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.target import check_runs_here, resolve_target

CONFIG = SketchConfig(unroll_steps=(0,))
UNITS = ("vpmaddubsw", "vpmaddwd", "vpmaddwd_int8", "vpmaddwd_uint8")
AVX2 = replace(
    HARDWARE,
    vector_bytes=32,
    vector_registers=16,
    dot_units=tuple(DotUnit(name, 0.75, 1.0) for name in UNITS),
)
ROWS, COLUMNS, DEPTH = 6, 43, 16  # vectors of 8 and 2 lanes, and one element
TARGETS = ("x86-64-v2", "x86-64-v3", "skylake-avx512")  # without, of 32 bytes, of 64 bytes
WEIGHT = 1


def product(left: str, right: str) -> tirx.PrimFunc:
    """`C[i, j] = sum A[i, k] * B[k, j]`, in int32."""
    a = te.placeholder((ROWS, DEPTH), left, "A")
    b = te.placeholder((DEPTH, COLUMNS), right, "B")
    k = te.reduce_axis((0, DEPTH), "k")
    wide = "int32"
    c = te.compute(
        (ROWS, COLUMNS),
        lambda i, j: te.sum(a[i, k].astype(wide) * b[k, j].astype(wide), axis=k),
        "C",
    )
    return te.create_prim_func([a, b, c])


NARROW = with_narrow(product("uint8", "int8"), {WEIGHT})


def instructions(func: tirx.PrimFunc) -> set[str]:
    sketches = CPU_SEARCH.sketches(read_dag(func), AVX2, CONFIG)
    steps = [step for sketch in sketches for step in sketch.steps]
    return {step.instruction for step in steps if isinstance(step, DotProducts)}


def a_program(func: tirx.PrimFunc, constants: tuple[int, ...], vector: int = 8) -> Program:
    """A program whose vectors have at least a number of lanes."""
    sketch = CPU_SEARCH.sketches(read_dag(func, constants), AVX2, CONFIG)[0]
    drawn = sample(sketch, 256, np.random.default_rng(0))
    hole = next(d.name for d in sketch.decisions if d.name.endswith(".j"))
    allowed = legal(build_nest(drawn), AVX2, CONFIG) & (drawn.values(hole)[:, -1] >= vector)
    return drawn.program(int(np.flatnonzero(allowed)[0]))


def extremes(dtype: str, shape: tuple[int, int], *limits: int) -> np.ndarray:
    """Mostly the limits of a dtype, or the given ones."""
    low, high = limits or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rng = np.random.default_rng(2)
    ends = np.where(rng.random(shape) < 0.7, high, low)
    return np.where(rng.random(shape) < 0.9, ends, rng.integers(low, high, shape)).astype(dtype)


def found(func: tirx.PrimFunc, program: Program, processor: str, *inputs: np.ndarray) -> Any:
    target = resolve_target(f"llvm -mcpu={processor}")
    try:
        check_runs_here(target)
    except UnsupportedError as error:
        pytest.skip(str(error))
    arrays = packed_arrays(program, dict(zip("AB", inputs, strict=True))).values()
    out = tvm.runtime.tensor(np.zeros((ROWS, COLUMNS), np.int32))
    text = json.dumps({"kind": "llvm", "mcpu": processor, "num-cores": 2})
    module: Any = compile_function(lower(func, program), text)
    module(*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("uint8", "int8", "vpmaddwd"),
        ("int8", "uint8", "vpmaddwd"),
        ("int8", "int8", "vpmaddwd_int8"),
        ("uint8", "uint8", "vpmaddwd_uint8"),
    ],
)
def test_without_a_promise_the_instruction_is_exact(left: str, right: str, expected: str) -> None:
    assert instructions(product(left, right)) == {expected}


def test_narrow_weights_are_multiplied_in_pairs() -> None:
    assert instructions(NARROW) == {"vpmaddubsw"}
    assert instructions(with_narrow(product("int8", "uint8"), {0})) == {"vpmaddubsw"}
    assert instructions(with_narrow(product("int8", "int8"), {WEIGHT})) == {"vpmaddwd_int8"}


@pytest.mark.parametrize("processor", TARGETS)
@pytest.mark.parametrize("constants", [(), (WEIGHT,)], ids=["packed", "constant"])
@pytest.mark.parametrize(
    ("left", "right", "limits"),
    [
        ("uint8", "int8", (-64, 64)),
        ("uint8", "int8", ()),
        ("int8", "int8", ()),
        ("uint8", "uint8", ()),
    ],
    ids=["narrow", "mixed", "signed", "unsigned"],
)
def test_sums_do_not_saturate(
    left: str, right: str, limits: tuple[int, ...], constants: tuple[int, ...], processor: str
) -> None:
    a, b = extremes(left, (ROWS, DEPTH)), extremes(right, (DEPTH, COLUMNS), *limits)
    func = NARROW if limits else product(left, right)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    assert np.array_equal(found(func, a_program(func, constants), processor, a, b), expected)


@pytest.mark.parametrize(
    ("func", "present"), [(NARROW, True), (product("uint8", "int8"), False)], ids=["narrow", "any"]
)
def test_machine_code(func: tirx.PrimFunc, present: bool) -> None:
    code = compiled(func, a_program(func, (WEIGHT,)), "haswell")
    assert ("vpmaddubsw" in code) == present
    assert "vpmaddwd" in code
    assert "ansor_dot" not in code


def test_a_program_for_narrow_operands_suits_no_others() -> None:
    program = a_program(NARROW, ())
    with pytest.raises(LoweringError, match="vpmaddubsw is not exact"):
        lower(product("uint8", "int8"), program)


def test_narrow_operands_are_a_part_of_the_task() -> None:
    plain = product("uint8", "int8")
    assert read_dag(NARROW).key != read_dag(plain).key
    assert read_dag(with_narrow(NARROW, ())).key == read_dag(plain).key


def test_the_range_of_narrow_values() -> None:
    assert is_narrow(np.array([-64, 64], np.int8))
    assert is_narrow(np.array([], np.int8))
    assert not is_narrow(np.array([65], np.int8))
    assert not is_narrow(np.array([-65], np.int8))
    assert not is_narrow(np.array([-128], np.int8))
    assert not is_narrow(np.array([1], np.int32))
