"""Runs whose device is another machine: its target, its threads, its parameters, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from formula_device import FormulaDevice

import ansor
from ansor.callbacks import Callback
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.deploy.foreign import ForeignModel
from ansor.measure.device import TaskProgram
from ansor.measure.remote_machine import RemoteMachine
from ansor.measure.result import Verification
from ansor.run.tuned.tuned_model import TunedModel
from ansor.targets.cpu.machine import Hardware
from ansor.targets.target import resolve_target, target_text
from ansor.workloads import build

BOARD = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
SIZES = {"rows": 32, "columns": 40, "depth": 36}


class Board(FormulaDevice):
    """An ARM board with four cores that answers from a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.verified: list[TaskProgram] = []

    def remote(self) -> RemoteMachine:
        hardware = Hardware(name="board", cores=4, vector_bytes=16, vector_registers=32)
        return RemoteMachine(target_text(resolve_target(BOARD), 4), 4, hardware)

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        self.verified += candidates
        return super().verify(candidates)


@pytest.fixture(scope="module")
def board() -> Board:
    return Board()


@pytest.fixture(scope="module")
def tuned(board: Board) -> TunedModel:
    return ansor.auto_schedule(list(build("matmul", **SIZES).tensors), trials=8, device=board)


def test_programs_are_for_the_device(board: Board, tuned: TunedModel) -> None:
    assert (board.count, board.is_closed) == (8, True)
    ((task, _),) = board.verified
    assert task.target == board.remote().target
    assert str(tuned.compiled.target.attrs["mcpu"]) == "cortex-a72"
    assert tuned.compiled.threads == 4


def test_the_result_does_not_run_here(tuned: TunedModel) -> None:
    assert isinstance(tuned.compiled, ForeignModel)
    arrays = [np.zeros((spec.shape), spec.dtype) for spec in tuned.compiled.inputs]
    with pytest.raises(UnsupportedError, match=r"cortex-a72.*save the model"):
        tuned(*arrays)
    with pytest.raises(UnsupportedError, match="cortex-a72"):
        tuned.benchmark()
    with pytest.raises(UnsupportedError, match="aarch64"):
        _ = tuned.untuned
    assert "measured as a whole: - ms" in tuned.report()


def test_the_result_is_saved_and_compiled_where_it_is_loaded(
    tuned: TunedModel, tmp_path: Path
) -> None:
    path, definition = tmp_path / "model.ansor", build("matmul", **SIZES)
    tuned.save(path)
    with pytest.raises(UnsupportedError, match="recompile=True"):
        ansor.load(path)
    here = ansor.load(path, recompile=True)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((32, 36), (36, 40))]
    np.testing.assert_allclose(here(*arrays), definition.reference(*arrays), rtol=1e-4, atol=1e-4)


def test_the_result_is_exported_to_plain_tvm(tuned: TunedModel, tmp_path: Path) -> None:
    assert tuned.export_metaschedule(tmp_path / "records") == 1


class Notes(Callback):
    """Collects the messages of a run."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_stage(self, text: str) -> None:
        self.texts.append(text)


def test_the_device_decides_on_target_and_threads() -> None:
    tensors = list(build("matmul", **SIZES).tensors)
    for wrong in ("llvm", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53"):
        with pytest.raises(ArgumentError, match="the device runs programs for"):
            ansor.auto_schedule(tensors, wrong, trials=2, device=Board())
    with pytest.raises(ArgumentError, match="threads"):
        ansor.auto_schedule(tensors, threads=2, trials=2, device=Board())
    with pytest.raises(UnsupportedError, match="error cannot be measured"):
        ansor.auto_schedule(tensors, precision="bfloat16", trials=2, device=Board())
    again = ansor.auto_schedule(tensors, BOARD, trials=2, device=Board())
    assert isinstance(again.compiled, ForeignModel)
