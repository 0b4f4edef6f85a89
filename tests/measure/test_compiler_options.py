"""Options for LLVM beyond the target."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te

from ansor.targets.build import ENTRY, compile_function
from ansor.targets.cpu.target import compiler_target
from ansor.targets.cuda.backend import CUDA

N = 64


def add_one() -> tvm.tirx.PrimFunc:
    x = te.placeholder((N,), name="x")
    return te.create_prim_func([x, te.compute((N,), lambda i: x[i] + 1.0, name="y")])


def result_of(module: object) -> np.ndarray:
    x = np.arange(N, dtype=np.float32)
    out = tvm.runtime.tensor(np.zeros_like(x), tvm.cpu())
    module[ENTRY](tvm.runtime.tensor(x, tvm.cpu()), out)  # type: ignore[index]
    return np.asarray(out.numpy() - x)


def test_llvm_knows_every_option(capfd: pytest.CaptureFixture[str]) -> None:
    """TVM leaves out, with a message, an option that its LLVM does not have."""
    module = compile_function(add_one(), "llvm")
    assert np.array_equal(result_of(module), np.ones(N, dtype=np.float32))
    assert "option" not in "".join(capfd.readouterr())
    unknown = {"kind": "llvm", "cl-opt": ["-no-such-option:uint=1"]}
    compile_function(add_one(), "llvm", llvm_target=tvm.target.Target(unknown))
    assert "no-such-option" in "".join(capfd.readouterr())


def test_a_targets_own_attributes_stay() -> None:
    given = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 3}
    told = compiler_target(tvm.target.Target(given)).export()
    assert {key: told[key] for key in given} == given
    own = "-unroll-threshold:uint=7"
    options = compiler_target(tvm.target.Target({**given, "cl-opt": [own]})).export()["cl-opt"]
    assert list(map(str, options)) == [*map(str, told["cl-opt"]), own]


def test_a_gpu_is_told_nothing_more() -> None:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    assert CUDA.compiler.target(target).export() == target.export()
