"""Conversions of rounded numbers to integers in compiled functions."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from ansor.targets.build import compile_function
from ansor.targets.target import resolve_target, target_text

NATIVE = target_text(resolve_target("native"), 1)
PLAIN = '{"kind": "llvm", "mcpu": "x86-64"}'
SIZE = 64


def quantising(length: int = SIZE) -> tirx.PrimFunc:
    """Clipped, rounded and stored in 8 bits, in vectors of 16."""
    x = te.placeholder((length,), "float32", "x")

    def element(i: tirx.Var) -> tirx.PrimExpr:
        clipped = te.min(te.max(x[i], tirx.const(0.0, "float32")), tirx.const(255.0, "float32"))
        return tirx.nearbyint(clipped).astype("int32").astype("uint8")

    schedule = tvm.s_tir.Schedule(
        te.create_prim_func([x, te.compute((length,), element, name="out")])
    )
    (loop,) = schedule.get_loops(schedule.get_sblock("out"))
    _, inner = schedule.split(loop, [None, 16])
    schedule.vectorize(inner)
    return schedule.mod["main"]


@pytest.mark.parametrize("target", [NATIVE, PLAIN], ids=["native", "plain"])
@settings(max_examples=20, deadline=None)
@given(
    halves=st.lists(st.integers(-100, 700), min_size=SIZE, max_size=SIZE),
    shift=st.sampled_from([0.0, 0.25, -0.001]),
)
def test_ties_go_to_even(target: str, halves: list[int], shift: float) -> None:
    x = (np.asarray(halves) / 2 + shift).astype(np.float32)
    out = tvm.runtime.tensor(np.zeros(SIZE, np.uint8))
    compile_function(quantising(), target)(tvm.runtime.tensor(x), out)
    assert np.array_equal(out.numpy(), np.rint(x.clip(0, 255)).astype(np.uint8))


@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3", "znver4"])
def test_one_instruction_rounds_and_converts(processor: str) -> None:
    target = f'{{"kind": "llvm", "mcpu": "{processor}"}}'
    code = str(compile_function(quantising(), target).inspect_source("s"))
    assert re.search(r"\bv?cvtps2dq\b", code)
    assert not re.search(r"round|rndscale|cvttps|lrint", code)
