"""`ansor.tune`: one operator, its loops and its assembly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tvm
from click.testing import CliRunner
from definitions import workload
from formula_device import FormulaDevice
from tvm import tirx

import ansor
from ansor.cli.main import main
from ansor.config import FULL, QUICK
from ansor.errors import ArgumentError
from ansor.executor import in_turns

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
NAME = "matmul_relu"


class Formula(FormulaDevice):
    """Takes the place of the worker processes."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__()


@pytest.fixture(scope="module")
def tuned() -> ansor.TunedModel:
    tensors = list(workload(NAME).tensors)
    return ansor.tune(tensors, trials=4, device=FormulaDevice(), config=QUICK)


def test_the_source_is_the_function_that_is_compiled(tuned: ansor.TunedModel) -> None:
    (func,) = (f for f in tuned.compiled.mod.functions.values() if isinstance(f, tirx.PrimFunc))
    read = tvm.script.from_source(tuned.source())
    tvm.ir.assert_structural_equal(read.without_attr("global_symbol"), func)
    assert "def operator(" in tuned.source("operator")


def test_the_assembly_multiplies_in_vectors(tuned: ansor.TunedModel) -> None:
    text = tuned.assembly()
    assert "main" in text
    assert re.search(r"v?(fmadd|mulps|fmla|mul)", text)


def test_a_saved_operator_shows_the_same(tuned: ansor.TunedModel, tmp_path: Path) -> None:
    file = tmp_path / "operator.ansor"
    tuned.save(file)
    for name, expected in (("source", tuned.source()), ("assembly", tuned.assembly())):
        done = CliRunner().invoke(main, ["show", name, str(file)])
        assert done.exception is None, done.output
        assert done.output.strip() == expected.strip()


def test_an_unknown_function_is_refused(tuned: ansor.TunedModel) -> None:
    with pytest.raises(ArgumentError, match="function='conv': give one of operator"):
        tuned.source("conv")


def test_the_budget_is_that_of_the_settings() -> None:
    device = FormulaDevice()
    ansor.tune(workload(NAME).func, device=device, config=QUICK)
    assert device.count == FULL.default_trials == 64


@pytest.mark.parametrize("model", ["resnet18", [], 3])
def test_only_operators_are_taken(model: object) -> None:
    with pytest.raises(ArgumentError, match=r"^operator=.*auto_schedule takes networks"):
        ansor.tune(model)


def test_another_processor_has_its_assembly() -> None:
    tensors = list(workload(NAME).tensors)
    tuned = ansor.tune(tensors, "cortex-a72", trials=0, device=FormulaDevice(), config=QUICK)
    assert re.search(r"\bfm(la|add|ul)\b", tuned.assembly())
