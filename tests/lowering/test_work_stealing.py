"""Parallel loops that cores share out while they run: all is done, and once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import workload
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx
from tvm.script import tirx as T

from ansor.lowering.for_cpu import for_cpu
from ansor.lowering.passes.work_stealing import num_pieces, steal_work
from ansor.lowering.statements import collect, with_llvm
from ansor.targets import registry
from ansor.targets.build import compile_function, pass_context
from ansor.targets.cpu.backend import CPU
from ansor.targets.host.threads import available_cores, use_threads


def counted(extent: int, turns: int = 1) -> tirx.PrimFunc:
    """Adds one to each element, `turns` times, by a parallel loop inside a serial one."""

    @T.prim_func(s_tir=True)
    def func(seen: T.Buffer((extent,), "int32")) -> None:  # type: ignore[valid-type]
        with T.sblock("root"):
            for _turn in range(turns):
                for i in T.parallel(extent):
                    with T.sblock("add"):
                        v = T.axis.spatial(extent, i)
                        seen[v] = seen[v] + 1

    return func


def parallel_extents(func: Any) -> list[int]:
    loops = collect(func.body, tirx.For)
    return [int(loop.extent) for loop in loops if loop.kind == tirx.ForKind.PARALLEL]


def shared(func: tirx.PrimFunc, cores: int) -> tirx.PrimFunc:
    return steal_work(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), cores)[
        "main"
    ]


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("extent", [2, 3, 8, 31, 49, 97, 392, 1000])
def test_every_iteration_is_done_once(extent: int, cores: int) -> None:
    """However many cores it is shared out among, and however many there are."""
    func = shared(counted(extent, turns=3), cores)
    pieces = num_pieces(extent, cores)
    assert parallel_extents(func) == [cores if pieces > cores > 1 else extent]
    seen = np.zeros(extent, dtype=np.int32)
    tensor = tvm.runtime.tensor(seen)
    with pass_context([func]):
        module = tvm.compile(tvm.IRModule({"main": func}), "llvm").mod
    for times in range(1, 4):
        module["main"](tensor)
        assert (tensor.numpy() == 3 * times).all()


@given(extent=st.integers(1, 10_000), cores=st.integers(1, 64))
def test_pieces_are_equal_and_as_many_as_may_be(extent: int, cores: int) -> None:
    pieces = num_pieces(extent, cores)
    assert extent % pieces == 0
    assert pieces <= 16 * cores
    assert not [n for n in range(pieces + 1, 16 * cores + 1) if extent % n == 0]


def test_a_core_that_is_held_up_leaves_its_share_to_others() -> None:
    """Of two cores the second waits until nothing but the piece that it has begun is left."""
    use_threads(available_cores())
    if available_cores() < 2:
        pytest.skip("takes two cores")

    @T.prim_func(s_tir=True)
    def func(done: T.Buffer((32,), "int32"), left: T.Buffer((1,), "int32")) -> None:
        with T.sblock("root"):
            for i in T.parallel(32):
                with T.sblock("work"):
                    v = T.axis.spatial(32, i)
                    T.evaluate(T.call_extern("int32", "held_up", T.address_of(left[0]), v))
                    done[v] = 1

    held_up = """
define linkonce_odr i32 @held_up(ptr %left, i32 %number) noinline nounwind {
  %last = icmp eq i32 %number, 16
  br i1 %last, label %wait, label %work
work:
  %before = atomicrmw sub ptr %left, i32 1 seq_cst
  ret i32 0
wait:
  %polls = phi i64 [ 0, %0 ], [ %more, %again ]
  %now = load atomic i32, ptr %left seq_cst, align 4
  %alone = icmp eq i32 %now, 1
  br i1 %alone, label %work, label %again
again:
  %more = add i64 %polls, 1
  %tired = icmp eq i64 %more, 50000000000
  br i1 %tired, label %never, label %wait
never:
  ret i32 1
}
"""
    made = shared(func, 2)
    made = made.with_body(with_llvm(made.body, held_up))
    module = tvm.compile(tvm.IRModule({"main": made}), "llvm").mod
    done, left = (tvm.runtime.tensor(np.full(n, v, np.int32)) for n, v in ((32, 0), (1, 32)))
    module["main"](done, left)
    assert (done.numpy() == 1).all()
    assert left.numpy().tolist() == [0]


def test_what_is_compiled_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.lowering.for_cpu.running_threads", lambda: 2)
    code = str(compile_function(counted(64), "llvm").inspect_source("ll"))
    assert "atomicrmw xchg" in code
    assert "call i32 @ansor_claim" not in code


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_that_begin_elsewhere_and_step_are_compiled(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansor.lowering.for_cpu.running_threads", lambda: threads)

    @T.prim_func(s_tir=True)
    def func(seen: T.Buffer((96, 20), "int32")) -> None:
        with T.sblock("root"):
            for i in T.parallel(4, 96, step=2):
                for j in T.serial(3, 19, step=5):
                    with T.sblock("add"):
                        row, column = T.axis.remap("SS", [i, j])
                        seen[row, column] = seen[row, column] + 1

    tensor = tvm.runtime.tensor(np.zeros((96, 20), dtype=np.int32))
    compile_function(func, "llvm")["main"](tensor)
    expected = np.zeros((96, 20), dtype=np.int32)
    expected[4:96:2, 3:19:5] = 1
    assert (tensor.numpy() == expected).all()


def test_loops_begin_at_zero_before_they_are_shared_out() -> None:
    """TVM's own pass for that is not among those that follow."""

    @T.prim_func(s_tir=True)
    def func(seen: T.Buffer((96,), "int32")) -> None:
        with T.sblock("root"):
            for i in T.parallel(4, 96, step=2):
                with T.sblock("add"):
                    v = T.axis.spatial(96, i)
                    seen[v] = seen[v] + 1

    made = shared(func, 2)
    piece, *others = sorted(
        collect(made.body, tirx.For), key=lambda loop: isinstance(loop.min, tirx.IntImm)
    )
    assert int(piece.extent) * num_pieces(46, 2) == 46
    assert [(int(loop.min), loop.step) for loop in others] == [(0, None)] * 3


def test_functions_without_parallel_loops_stay() -> None:
    func = workload("matmul").func
    assert shared(func, 2).body.same_as(func.body)


def test_what_tvm_has_scheduled_is_left_to_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tvm.IRModule] = []

    def noted(mod: tvm.IRModule, target: tvm.target.Target, threads: int | None) -> tvm.IRModule:
        asked.append(mod)
        return for_cpu(mod, target, threads)

    noting = replace(CPU, compiler=replace(CPU.compiler, prepare=noted))
    monkeypatch.setattr(registry, "_BACKENDS", {CPU.kind: noting})
    func = counted(64)
    compile_function(func, "llvm", exact=True)
    assert not asked
    compile_function(func, "llvm")
    assert len(asked) == 1
