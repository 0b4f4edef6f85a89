"""Modules that MetaSchedule's processes do not import, and those that they keep."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from benchmarks import tensor_intrinsics

_SCRIPT = """
from benchmarks.tensor_intrinsics import leave_out_others
leave_out_others()
import tvm.s_tir.tensor_intrin
from tvm.s_tir import TensorIntrin
for name in ("dot_16x4_vnni", "mma_sync_m16n8k8_f16f16f32", "wmma_fill_16x16x16_f32"):
    print(TensorIntrin.get(name, allow_missing=True) is not None)
"""


_VNNI = """
import numpy as np, tvm
from benchmarks.tensor_intrinsics import prepare_intrinsics
prepare_intrinsics()
prepare_intrinsics()  # again: nothing more is done
from tvm import s_tir, te
a, b = te.placeholder((8,), "uint8", name="A"), te.placeholder((32, 8), "int8", name="B")
k = te.reduce_axis((0, 8), "k")
c = te.compute((32,), lambda i: te.sum(a[k].astype("int32") * b[i, k].astype("int32"), k), "C")
sch = s_tir.Schedule(te.create_prim_func([a, b, c]))
i, k = sch.get_loops("C")
(io, ii), (ko, ki) = sch.split(i, [None, 16]), sch.split(k, [None, 4])
sch.reorder(io, ko, ii, ki)
sch.decompose_reduction("C", ko)
sch.cache_read("C_update", 2, "global")
sch.transform_layout("C_update", ("read", 2), lambda i, k: (i // 16, k // 4, i % 16, k % 4))
sch.tensorize(ii, "dot_16x4_vnni")
compiled = tvm.compile(sch.mod, tvm.target.Target({"kind": "llvm", "mcpu": "cascadelake"}))
print(compiled.mod.inspect_source("asm").count("vpdpbusd") > 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles an x86 intrinsic")
def test_tvms_intrinsic_for_vnni_compiles_after_its_repair() -> None:
    ran = subprocess.run([sys.executable, "-c", _VNNI], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["True"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for an x86 intrinsic")
def test_only_the_intrinsics_of_this_processor_are_read() -> None:
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["True", "False", "False"]


def test_of_an_unknown_processor_all_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    before = set(sys.modules)
    tensor_intrinsics.leave_out_others()
    assert set(sys.modules) == before
