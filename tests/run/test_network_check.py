"""Imports that are wrong are refused, with the operator and its layer; right ones pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

import ansor
from ansor.errors import UnsupportedError
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize
from ansor.run.check.input_sets import input_sets
from ansor.run.check.network import ResultError, SourceComparison
from ansor.targets.target import resolve_target

torch = pytest.importorskip("torch")

TARGET = resolve_target("native")


class Scaled(torch.nn.Module):
    """One layer, then an operator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.first(x)) + 2 * x


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """An importer that takes tanh for something else."""
    from ansor.frontend.importers.from_torch import translate

    ours = translate.converter_for

    def wrong(node: Any, translator: Any) -> Any:
        data = translator.env[node.args[0]]
        return translator.block_builder.emit(relax.op.multiply(data, data))

    monkeypatch.setattr(
        translate,
        "converter_for",
        lambda node: wrong if node.target.__name__ == "tanh.default" else ours(node),
    )


def test_a_wrong_import_is_refused_by_name(wrong_tanh: None) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Scaled())
    with pytest.raises(UnsupportedError, match=r"aten\.tanh\.default in layer 1 .*differs by"):
        ansor.auto_schedule(model, example_inputs=(torch.randn(2, 4),), trials=0)


def test_the_check_can_be_switched_off(wrong_tanh: None) -> None:
    x = torch.randn(2, 4)
    tuned = ansor.auto_schedule(Scaled(), example_inputs=(x,), trials=0, check_import=False)
    assert tuned.checks == ()


def test_a_right_import_is_noted_in_the_report() -> None:
    x = torch.randn(2, 4)
    tuned = ansor.auto_schedule(Scaled(), example_inputs=(x,), trials=0)
    assert [check.stage for check in tuned.checks] == ["import", "tuned network"]
    assert all(check.difference < 1e-5 and check.framework == "PyTorch" for check in tuned.checks)
    assert "import: as PyTorch on example inputs, ordinary values" in tuned.report()


def test_a_wrong_tuned_network_is_refused() -> None:
    imported = import_model(Scaled(), torch.randn(2, 4))
    comparison = SourceComparison(imported.source, TARGET)
    comparison.check_import(optimize(imported.mod, TARGET))
    other = import_model(Scaled(), torch.randn(2, 4))  # with other weights
    compiled = compile_model(optimize(other.mod, TARGET), TARGET)
    with pytest.raises(ResultError, match="the tuned network differs from PyTorch"):
        comparison.check_tuned(compiled)


def test_a_network_that_amplifies_rounding_is_not_refused() -> None:
    class Amplifies(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            centred = x - x.mean(1, keepdim=True)
            return centred.sum(1) * 1e6  # nothing but rounding

    x = torch.randn(8, 1000)
    tuned = ansor.auto_schedule(Amplifies(), example_inputs=(x,), trials=0)
    assert len(tuned.checks) == 2


class TestInputs:
    def source(self, model: Any, *examples: Any) -> Any:
        return import_model(model, examples).source

    def test_integers_are_negative_where_that_is_legal(self) -> None:
        class Absolute(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return x.abs()

        sets = list(input_sets(self.source(Absolute(), torch.arange(100))))
        assert [s.name for s in sets] == ["example inputs", "ordinary values", "extreme values"]
        assert sets[1].arrays[0].min() < 0
        assert sets[2].arrays[0].min() == np.iinfo(np.int64).min

    def test_indices_stay_in_range(self) -> None:
        sets = list(input_sets(self.source(torch.nn.Embedding(5, 2), torch.tensor([1, 4]))))
        assert all(s.arrays[0].min() >= 0 and s.arrays[0].max() <= 4 for s in sets)
        assert len(sets) == 3

    def test_floats_hold_ties_zeros_and_large_values(self) -> None:
        sets = list(input_sets(self.source(torch.nn.ReLU(), torch.randn(1000))))
        ordinary, extreme = sets[1].arrays[0], sets[2].arrays[0]
        assert np.count_nonzero(ordinary == 0) > 10
        assert len(np.unique(ordinary)) < 1000
        assert np.abs(extreme).max() == 1e4

    def test_they_are_the_same_at_every_call(self) -> None:
        source = self.source(torch.nn.ReLU(), torch.randn(10))
        first, second = list(input_sets(source)), list(input_sets(source))
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one.arrays[0], other.arrays[0])


def test_a_pass_that_fails_names_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansor.run import prepare as module

    def fails(mod: tvm.IRModule, *_: Any) -> Any:
        raise tvm.error.InternalError("std::bad_alloc")

    monkeypatch.setattr(module, "optimize_with_variants", fails)
    with pytest.raises(UnsupportedError, match="TVM cannot compile the network: std::bad_alloc"):
        ansor.auto_schedule(Scaled(), example_inputs=(torch.randn(2, 4),), trials=0)
