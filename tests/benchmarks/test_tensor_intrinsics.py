"""What MetaSchedule's processes are spared, and what they keep."""

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
