"""Whole runs in bfloat16, compared with PyTorch, and refused requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

import ansor
from ansor.config import PRECISION, QUICK
from ansor.database.database import Database
from ansor.errors import ArgumentError, UnsupportedError
from ansor.run.arguments import check_short_products
from ansor.run.check.deviation import squared_error
from ansor.run.check.network import ResultError
from ansor.run.precision.phase import PrecisionPhase
from ansor.run.prepare import Network
from ansor.run.settings import Settings
from ansor.targets.target import resolve_target
from ansor.workloads import build

torch = pytest.importorskip("torch")

SHORT = "bfloat16"
WHY_NOT_HERE = ansor.targets.registry.backend_of("llvm").network.why_not_short(
    resolve_target("native"), SHORT
)
needs_instructions = pytest.mark.skipif(WHY_NOT_HERE is not None, reason=str(WHY_NOT_HERE))


class Attention(torch.nn.Module):
    """A convolution, a depthwise one, a normalisation and products of activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.depthwise = torch.nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.linear = torch.nn.Linear(16, 24)
        self.normal = torch.nn.LayerNorm(24)
        self.last = torch.nn.Linear(24, 10)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.first(x))
        y = torch.max_pool2d(torch.relu(self.depthwise(y)) + y, 2)
        rows = self.normal(self.linear(y.flatten(2).transpose(1, 2)))
        scores = torch.softmax(rows @ rows.transpose(1, 2) / 5, -1)
        return self.last(scores @ rows + rows)


def example() -> Any:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((1, 3, 12, 12)).astype("f4"))


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return Attention().eval()


@needs_instructions
def test_a_network_is_near_pytorch(model: Any, tmp_path: Path) -> None:
    tuned = ansor.auto_schedule(model, example_inputs=example(), precision=SHORT, trials=0)
    result, expected = tuned(example()).numpy(), model(example()).detach().numpy()
    assert result.dtype == np.float32
    assert 1e-8 < squared_error(expected, result) < 1e-4
    assert "calls with products multiply short floats" in tuned.report()
    assert tuned.checks[-1].deviation is not None
    tuned.save(tmp_path / "model.ansor")
    loaded = ansor.load(tmp_path / "model.ansor")
    np.testing.assert_array_equal(loaded(example()).numpy(), result)
    assert loaded.checks == tuned.checks
    assert loaded.precision == tuned.precision


@pytest.mark.slow
@needs_instructions
def test_sensitive_functions_stay_in_float32(model: Any) -> None:
    arguments = {"example_inputs": example(), "precision": SHORT, "trials": 0}
    tuned = ansor.auto_schedule(model, **arguments, max_error=6e-6)
    assert squared_error(model(example()).detach().numpy(), tuned(example()).numpy()) <= 6e-6
    wide = [row for row in tuned.precision if "too sensitive" in row.reason]
    assert wide
    assert all(row.short == 0 for row in wide)
    assert any(row.short for row in tuned.precision)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the search everything seems to be within the error budget."""
    hasty = replace(PRECISION, budget_share=float("inf"))
    monkeypatch.setattr("ansor.run.precision.phase.PRECISION", hasty)


@pytest.mark.slow
@needs_instructions
@pytest.mark.usefixtures("hasty")
def test_calls_of_a_tuned_network_over_the_budget_go_back(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    arguments = {"example_inputs": example(), "precision": SHORT, "trials": 8, "config": QUICK}
    tuned = ansor.auto_schedule(model, **arguments, database=path, max_error=6e-6)
    assert squared_error(model(example()).detach().numpy(), tuned(example()).numpy()) <= 6e-6
    assert tuned.checks[-1].is_within
    wide = [row for row in tuned.precision if row.reason and not row.short]
    assert wide
    assert all("the network with it, tuned: " in row.reason for row in wide)
    assert any(row.short for row in tuned.precision)
    with Database(path) as records:
        assert records.count() >= 8, "what was tuned before is kept"


@needs_instructions
@pytest.mark.usefixtures("hasty")
def test_a_budget_that_float32_does_not_meet_either_is_refused() -> None:
    def largest(expected: Any, actual: Any) -> float:
        return float(np.abs(expected - actual).max())

    arguments = {"example_inputs": torch.randn(4, 16), "precision": SHORT, "config": QUICK}
    with pytest.raises(ResultError, match="no precision meets it, the least error is"):
        ansor.auto_schedule(
            torch.nn.Linear(16, 8), trials=0, **arguments, metric=largest, max_error=1e-12
        )


@pytest.mark.slow
@needs_instructions
def test_the_results_are_compared_by_the_metric_of_the_user(model: Any) -> None:
    def largest(expected: Any, actual: Any) -> float:
        return float(np.abs(expected - actual).max())

    arguments = {"example_inputs": example(), "precision": SHORT, "trials": 0}
    tuned = ansor.auto_schedule(model, **arguments, metric=largest, max_error=0.5)
    assert tuned.checks[-1].limit == 0.5
    with pytest.raises(ArgumentError, match="the least error is"):
        ansor.auto_schedule(model, **arguments, metric=largest, max_error=1e-12)


@needs_instructions
def test_an_operator_keeps_its_dtypes() -> None:
    tensors = list(build("matmul", rows=8).tensors)
    with pytest.raises(ArgumentError, match="an operator has the dtypes of its definition"):
        ansor.auto_schedule(tensors, precision=SHORT, trials=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": "float16"}, "must be one of float32, bfloat16"),
        ({"precision": None}, "must be one of"),
        ({"max_error": 1e-3}, 'give precision="bfloat16"'),
        ({"metric": max}, 'give precision="bfloat16"'),
        ({"precision": SHORT, "max_error": 0}, "must be a positive number"),
        ({"precision": SHORT, "max_error": "small"}, "must be a positive number"),
        ({"precision": SHORT, "max_error": float("nan")}, "must be a positive number"),
        ({"precision": SHORT, "metric": 3, "max_error": 1}, "must be a function"),
        ({"precision": SHORT, "metric": max}, "give the largest error of your metric"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ansor.auto_schedule("resnet18", trials=0, **arguments)


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ({"kind": "llvm", "mcpu": "skylake-avx512"}, "avx512_bf16 or amx_bf16"),
        ({"kind": "llvm", "mcpu": "znver3"}, "avx512_bf16 or amx_bf16"),
        ({"kind": "llvm", "mcpu": "znver4"}, ""),
        ({"kind": "llvm", "mcpu": "sapphirerapids"}, ""),
        ({"kind": "llvm", "mcpu": "skylake-avx512", "mattr": ["+avx512bf16"]}, ""),
        ({"kind": "cuda", "arch": "sm_90"}, "networks for cuda keep their own precision"),
    ],
)
def test_missing_instructions_are_named(target: dict[str, Any], missing: str) -> None:
    made = Target(target)
    check_short_products("float32", made)
    if not missing:
        check_short_products(SHORT, made)
        return
    with pytest.raises(UnsupportedError, match=missing):
        check_short_products(SHORT, made)


def test_without_instructions_auto_is_float32_and_says_why() -> None:
    target, told = Target({"kind": "llvm", "mcpu": "x86-64-v3"}), []
    network = Network(tvm.IRModule(), ())
    phase = PrecisionPhase(Settings(precision="auto"), target, "", told.append)
    assert phase.entered("net", network, None) is network
    (text,) = told
    assert text.startswith("the precision stays float32: ")
    assert "avx512_bf16 or amx_bf16" in text
    with pytest.raises(UnsupportedError, match=r'amx_bf16; tune for .* precision="float32"'):
        check_short_products(SHORT, target)
