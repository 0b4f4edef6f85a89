"""Logs, the best of a log, transfer and the choice of tasks, in whole runs on a formula."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tvm
from database_records import program, took
from definitions import workload
from fake_world import Recorder, make_task, make_tasks
from formula_device import FormulaDevice
from tvm import relax
from tvm.relax.frontend import nn

import ansor
from ansor.config import QUICK
from ansor.database import Database, opened_records
from ansor.errors import ArgumentError, DatabaseError
from ansor.run.remarks import check_applicable, choice_remarks, transfer_remarks
from ansor.run.search.allocation import LIMITS_MET

NAME, OTHER, TRIALS = "matmul_relu", "row_sum", 12


class Notes(Recorder):
    """Keeps the texts of stages too."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def on_stage(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a run with several habits at once."""
    path = tmp_path_factory.mktemp("habits") / "log.jsonl"
    device = FormulaDevice()
    tuned = ansor.auto_schedule(
        workload(NAME).func,
        trials_per_task=TRIALS,
        tasks="operator",
        log=path,
        device=device,
        config=QUICK,
    )
    assert tuned.finish is not None
    assert tuned.finish.trials == device.count == TRIALS
    return path


def test_a_run_writes_a_line_for_each_measurement(log: Path) -> None:
    assert len(log.read_text().splitlines()) == TRIALS
    with opened_records("log", log) as records:
        assert records.count() == TRIALS


def test_the_best_of_a_log_is_compiled_and_nothing_is_measured(log: Path) -> None:
    device = FormulaDevice()
    tuned = ansor.apply_best(workload(NAME).func, log, device=device, config=QUICK)
    assert device.count == 0
    (task,) = tuned.tasks
    with opened_records("log", log) as records:
        (entry,), (target,) = records.tasks(), records.targets()
        (best,) = records.best(entry.key, target)
    assert (task.latency_s, task.sketch) == (best.latency_s, best.program.sketch)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s.shape).astype("float32") for s in tuned.compiled.inputs]
    np.testing.assert_allclose(
        tuned(*arrays), workload(NAME).reference(*arrays), rtol=1e-3, atol=1e-4
    )


def test_a_log_of_another_operator_is_refused_by_names(log: Path) -> None:
    with pytest.raises(ArgumentError, match="no record of operator; its records are of operator"):
        ansor.apply_best(workload(OTHER).func, log, device=FormulaDevice())


def test_a_log_for_another_target_is_refused(log: Path) -> None:
    with pytest.raises(ArgumentError, match="no record of this model"):
        ansor.apply_best(workload(NAME).func, log, threads=1, device=FormulaDevice())


def test_a_run_begins_with_the_best_of_earlier_logs(log: Path) -> None:
    notes = Notes()
    with Database() as records:
        ansor.auto_schedule(
            workload(NAME).func,
            trials=8,
            seed=5,
            transfer=[log],
            database=records,
            device=FormulaDevice(),
            config=QUICK,
            callbacks=[notes],
        )
        (target,) = records.targets()
        again = [record.program for record in records.all_records(target)]
    with opened_records("log", log) as earlier:
        (entry,) = earlier.tasks()
        (best,) = earlier.best(entry.key, target)
    assert len(again) == 8
    assert best.program in again
    assert "transfer: records of 1 functions" in notes.texts


class Net(nn.Module):
    """A convolution with variants, and a dense layer."""

    def __init__(self) -> None:
        self.conv = nn.Conv2D(4, 4, 3, padding=1, bias=False)
        self.dense = nn.Linear(64, 4, bias=False)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.dense(nn.op.reshape(self.conv(x), (1, 64)))


def network() -> tvm.IRModule:
    """The net with all weights one."""
    spec = {"forward": {"x": nn.spec.Tensor((1, 4, 4, 4), "float32")}}
    mod, parameters = Net().export_tvm(spec)
    shapes = {name: [int(size) for size in p.shape] for name, p in parameters}
    ones = {name: tvm.runtime.tensor(np.ones(s, np.float32)) for name, s in shapes.items()}
    return relax.transform.BindParams("forward", ones)(mod)


def test_one_function_of_a_network_is_tuned_and_applied(tmp_path: Path) -> None:
    log, notes = tmp_path / "log.jsonl", Notes()
    tuned = ansor.auto_schedule(
        network(),
        trials_per_task=3,
        tasks="conv2d",
        log=log,
        device=FormulaDevice(),
        callbacks=[notes],
        config=QUICK,
    )
    assert tuned.finish is not None
    assert tuned.finish.reason == LIMITS_MET
    trials = {task.name: task.trials for task in tuned.tasks}
    rest = [name for name in trials if name != "conv2d"]
    assert trials["conv2d"] % 3 == 0
    assert trials["conv2d"] == tuned.finish.trials > 0
    assert notes.texts[1:3] == [
        f"1 of {len(trials)} functions are tuned",
        f"the draft chooses for {', '.join(rest)}",
    ]
    device, notes = FormulaDevice(), Notes()
    applied = ansor.apply_best(network(), log, device=device, callbacks=[notes], config=QUICK)
    assert device.count == 0
    assert f"no record of {', '.join(rest)}; the draft chooses" in notes.texts
    x = np.ones((1, 4, 4, 4), np.float32)
    windows = 4 * np.array([4, 6, 6, 4, 6, 9, 9, 6, 6, 9, 9, 6, 4, 6, 6, 4]).sum()
    for model in (tuned, applied):
        np.testing.assert_allclose(model(x), np.full((1, 4), 4.0 * windows), rtol=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        {"early_stopping": 0},
        {"early_stopping": 2.5},
        {"trials_per_task": -1},
        {"tasks": []},
        {"log": 7},
        {"transfer": 7},
        {"transfer": [None]},
        {"transfer": "missing.jsonl", "trials": 1},
        {"tasks": "conv3d", "trials": 1},
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object]) -> None:
    (name, *_) = arguments
    with pytest.raises(ArgumentError, match=rf"^{name}="):
        ansor.auto_schedule(workload(NAME).func, device=FormulaDevice(), **arguments)


@pytest.mark.parametrize("name", ["trials", "minutes", "database", "transfer"])
def test_the_best_of_a_log_takes_no_budget(name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}=.*nothing is measured"):
        ansor.apply_best(workload(NAME).func, "log.jsonl", **{name: 1})


def test_a_log_that_cannot_be_written_ends_a_run_before_it_begins(tmp_path: Path) -> None:
    device = FormulaDevice()
    with pytest.raises(DatabaseError, match="log="):
        ansor.auto_schedule(
            workload(NAME).func, trials=1, log=tmp_path / "no" / "log.jsonl", device=device
        )
    assert device.count == 0


# --- what users are told --------------------------------------------------------------------


@pytest.fixture
def records() -> Iterator[Database]:
    """Records of one of three tasks."""

    with Database() as database:
        database.add(make_task(NAME), program(1), took(1.0))
        yield database


def test_functions_that_are_not_tuned_are_named(records: Database) -> None:
    assert choice_remarks(make_tasks(), None, records) == []
    assert choice_remarks(make_tasks(), (OTHER,), records) == [
        "1 of 3 functions are tuned",
        f"the best of the database is taken for {NAME}",
        "the draft chooses for depthwise_conv2d",
    ]


def test_functions_without_a_record_are_named(records: Database) -> None:
    assert check_applicable(make_tasks(), records) == [
        f"no record of depthwise_conv2d, {OTHER}; the draft chooses"
    ]
    assert check_applicable(make_tasks(NAME), records) == []
    with pytest.raises(ArgumentError, match=f"no record of {OTHER}; its records are of {NAME}"):
        check_applicable(make_tasks(OTHER), records)


def test_what_earlier_runs_know_is_said(records: Database) -> None:
    assert transfer_remarks(make_tasks(), []) == []
    assert transfer_remarks(make_tasks(), [records]) == [
        "transfer: records of 1 functions",
        f"transfer: no record of depthwise_conv2d, {OTHER}",
    ]
