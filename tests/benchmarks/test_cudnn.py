"""The comparison with cuDNN, as far as a machine without a GPU allows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tvm
from click.testing import CliRunner
from gpu import TARGET, legal_sample, on_cpu, on_tensor_cores, sketches_of

from ansor.errors import ArgumentError, UnsupportedError
from ansor.measure.build import ENTRY, build
from benchmarks.cudnn import Row, known_rows, main, measure, table
from benchmarks.half import half_inputs, half_workload
from benchmarks.operator_case import workload_of

DONE = Row("C2D.2", 1, "float32", 231211008, 20.0, {"torch": 30.0, "torch_channels_last": 26.0})


def test_the_best_form_counts() -> None:
    assert DONE.best_peer == ("torch_channels_last", 26.0)
    assert DONE.speedup == pytest.approx(1.3)
    slower = Row("GMM.3", 16, "float32", 10**9, 20.0, {"torch": 10.0}, max_rel_err=1e-6)
    text = table([Row(**{**asdict(DONE), "max_rel_err": 2e-7}), slower])
    assert "geometric mean 0.81 x, least 0.50 x, of 2" in text
    assert "11.56" in text  # TFLOP/s


def test_finished_operators_are_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    failed = Row("GMM.0", 1, "float32", 1, error="UnsupportedError: no GPU")
    file.write_text(json.dumps({"results": [asdict(DONE), asdict(failed)]}))
    assert known_rows(str(file)) == [DONE]
    assert known_rows(str(tmp_path / "none.json")) == []
    assert known_rows(None) == []


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_without_a_gpu_it_ends_before_it_begins() -> None:
    found = CliRunner().invoke(main, ["--target", "cuda -arch=sm_90", "--ops", "GMM.0"])
    assert isinstance(found.exception, UnsupportedError)
    assert "no NVIDIA GPU" in str(found.exception)


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_an_operator_that_fails_is_a_row() -> None:
    target = tvm.target.Target(TARGET)
    row = measure("GMM.0", 1, "float32", target, {"trials": 1}, 1)
    assert row.error.startswith("UnsupportedError: target cuda")
    assert "no NVIDIA GPU" in table([row])


def test_a_wrong_dtype_is_named() -> None:
    found = CliRunner().invoke(main, ["--dtypes", "int4"])
    assert isinstance(found.exception, ArgumentError)
    assert "float32, float16" in str(found.exception)
    with pytest.raises(ArgumentError, match=r"NRM\.2 is none of"):
        half_workload("NRM.2", workload_of("NRM.2"))


@pytest.mark.parametrize("op", ["GMM.0", "C2D.3"])
def test_products_in_float16_go_to_tensor_cores(op: str) -> None:
    workload = half_workload(op, workload_of(op))
    inputs = half_inputs(workload, np.random.default_rng(0))
    sketches = [s for s in sketches_of(workload.func) if on_tensor_cores(s)]
    func = on_cpu(workload.func, legal_sample(sketches[0], 1).program(0))
    expected = workload.reference(*inputs)
    out = tvm.runtime.tensor(np.zeros(expected.shape, dtype=np.float32))
    build(func, "llvm")[ENTRY](*map(tvm.runtime.tensor, inputs), out)
    assert np.abs(out.numpy() - expected).max() <= 1e-4 * np.abs(expected).max()
