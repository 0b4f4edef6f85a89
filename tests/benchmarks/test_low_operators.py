"""Operators in bfloat16 and int8: their inputs, peers and peaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from definitions import SMALL_SUITE
from pretended_operators import Pretending, run

from ansor.errors import ArgumentError
from ansor.targets.target import resolve_target, target_text
from ansor.workloads.suite import PRODUCTS
from benchmarks import operator_child, operator_peak, operators
from benchmarks.operator_case import Case, workload_of
from benchmarks.tvm_timing import ready_function

pytestmark = pytest.mark.usefixtures("quiet_machine")

REGISTERED = ("matmul:rows=5;columns=7;depth=9", "dense:rows=5;columns=7;depth=9")
REGISTERED += ("batch_matmul:batch=1;rows=5;columns=7;depth=9",)


def test_low_precision_is_compared_with_the_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Knowing(Pretending):
        """A child whose output is right, and that knows the instruction of the peak."""

        def __init__(self, case: Case, system: str) -> None:
            super().__init__(case, system)
            workload = case.workload
            np.save(case.file(f"{system}.npy"), workload.reference(*case.inputs(workload)))

        def ask(self, what: str) -> dict[str, Any]:
            ready = what == "ready" and self.system == "ansor"
            return {"instruction": "vpdpbusd"} if ready else super().ask(what)

    monkeypatch.setattr(operators, "_tuned", lambda case, *_: operators._row(case, "ansor"))
    monkeypatch.setattr(operators, "start", Knowing)
    options = ("--dtypes", "float32,int8", "--trials", "0", "--peers", "torch")
    rows = run(tmp_path, "--ops", "matmul:rows=8;columns=8;depth=8", *options)["results"]
    assert [row["dtype"] for row in rows] == ["float32"] * 2 + ["int8"] * 2
    for row in rows[2:]:
        assert row["instruction"] == "vpdpbusd"
        assert row["max_rel_err"] == 0.0
        assert row["of_peak"] == pytest.approx(2 * 8**3 / row["latency_us"] / 1e3 / 100.0)


def test_without_an_instruction_there_is_no_share_of_a_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unmeasured(Pretending):
        """A child on a machine without an instruction."""

        def ask(self, what: str) -> dict[str, float]:
            answer = super().ask(what)
            return {key: value for key, value in answer.items() if key != "peak_gflops"}

    monkeypatch.setattr(operators, "_tuned", lambda case, *_: operators._row(case, "ansor"))
    monkeypatch.setattr(operators, "start", Unmeasured)
    (row,) = run(tmp_path, "--ops", "GMM.0", "--dtypes", "bfloat16", "--trials", "0")["results"]
    assert (row["of_peak"], row["peak_gflops"]) == (None, None)
    assert "instruction" not in row
    assert row["latency_us"] == 2e6


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("op", [*PRODUCTS, *REGISTERED])
def test_pytorch_computes_the_same_in_low_precision(
    op: str, dtype: str, channels_last: bool
) -> None:
    pytest.importorskip("torch")
    from ansor.frontend.importers.from_torch.capture import array_of
    from benchmarks.peers_torch import form
    from benchmarks.peers_torch_int8 import integer_form

    shape = SMALL_SUITE.get(op, ())
    workload = PRODUCTS[op](op, 1, shape, dtype) if shape else workload_of(op, dtype=dtype)
    inputs = workload.inputs(np.random.default_rng(0))
    expected = workload.reference(*inputs).astype(np.float64)
    made = (integer_form if dtype == "int8" else form)(op, inputs, channels_last, shape)
    out = array_of(made.finish(made.call())).astype(np.float64)
    assert out.shape == expected.shape
    if dtype == "int8":
        assert (out == expected).all()
    else:  # sums of another order may round to a neighbour
        np.testing.assert_allclose(out, expected, rtol=2.0**-7, atol=1e-3)


def test_bfloat16_is_kept_as_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("GMM.0", 1, str(tmp_path), "llvm", 1, dtype="bfloat16")
    made = (np.array([1.5], ml_dtypes.bfloat16), {}, dict)
    monkeypatch.setattr(operator_child, "SYSTEMS", {"x": lambda _: made})
    operator_child.load("x", case)
    found = np.load(case.file("x.npy"))
    assert (found.dtype, found[0]) == (np.float32, 1.5)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_a_program_is_run_on_the_inputs_of_its_dtype(tmp_path: Path, dtype: str) -> None:
    op = "matmul:rows=4;columns=16;depth=8"
    case = Case(op, 1, str(tmp_path), target_text(resolve_target("native"), 1), 1, dtype=dtype)
    workload = case.workload
    output, seconds = ready_function(workload.func, case, exact=True)
    assert (output == workload.reference(*case.inputs(workload))).all()
    assert seconds() > 0


def test_the_peak_is_that_of_the_dtype(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(operator_peak, "peak_meter_here", lambda *_: lambda: 7.0)
    monkeypatch.setattr(operator_peak, "operations_meter", lambda found, _: lambda: 9e9)
    case = Case("GMM.0", 1, str(tmp_path), '{"kind":"llvm","mcpu":"znver4"}', 1)
    names, rates = {}, {}
    for dtype in ("float32", "bfloat16", "int8"):
        own = replace(case, dtype=dtype)
        found, meter = operator_peak.peak_instruction(own), operator_peak.peak_meter(own)
        names[dtype], rates[dtype] = found and found.name, meter and meter()
    assert names == {"float32": None, "bfloat16": "vdpbf16ps", "int8": "vpdpbusd"}
    assert rates == {"float32": 7.0, "bfloat16": 9.0, "int8": 9.0}
    old = replace(case, target='{"kind":"llvm","mcpu":"nehalem"}', dtype="bfloat16")
    assert operator_peak.peak_meter(old) is None


def test_pytorch_has_no_stack_of_integer_products() -> None:
    pytest.importorskip("torch")
    from benchmarks.peers_torch_int8 import integer_form

    inputs = workload_of("batch_matmul:batch=2", dtype="int8").inputs(np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="no stack of integer products"):
        integer_form("batch_matmul", inputs, False, ())
