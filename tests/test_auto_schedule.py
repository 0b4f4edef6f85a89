"""The whole path on small definitions: real compilers, real timings, right results."""

from __future__ import annotations

import inspect
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from definitions import workload
from tvm import relax, te, tirx
from tvm.relax.frontend import nn

import ansor
import ansor.calls
from ansor.callbacks import Callback, Finish, Round, Start, TaskStatus
from ansor.closing import Closing
from ansor.config import QUICK
from ansor.database.database import Database
from ansor.errors import AnsorError, ArgumentError, DatabaseError, UnsupportedError
from ansor.executor import in_turns
from ansor.measure.result import successful_measurement
from ansor.program.program import Program
from ansor.run.prepare import prepare_network
from ansor.run.settings import Settings
from ansor.task import Task

NAME, TRIALS = "matmul_relu", 6
SEARCHED = replace(QUICK, measure=replace(QUICK.measure, untuned_s=0.0))  # no untuned program wins


class Net(nn.Module):
    """A convolution with bias and ReLU, a pooling, a dense layer."""

    def __init__(self) -> None:
        self.conv = nn.Conv2D(3, 8, 3, padding=1)
        self.dense = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        x = nn.op.relu(self.conv(x))
        return self.dense(nn.op.reshape(x, (1, 8 * 8 * 8)))


def relax_net() -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """The net as a Relax module with its weights bound, and the weights."""
    spec = {"forward": {"x": nn.spec.Tensor((1, 3, 8, 8), "float32")}}
    mod, parameters = Net().export_tvm(spec)
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal([int(s) for s in p.shape]).astype("float32")
        for name, p in parameters
    }
    constants = {name: tvm.runtime.tensor(value) for name, value in weights.items()}
    return relax.transform.BindParams("forward", constants)(mod), weights


def net_in_numpy(weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The same network, written out in double precision."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype("float64")
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    conv = np.einsum("nchwij,fcij->nfhw", seen, weights["conv.weight"])
    conv = np.maximum(conv + weights["conv.bias"][:, None, None], 0)
    return conv.reshape(1, -1) @ weights["dense.weight"].T + weights["dense.bias"]


def inputs_of(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = [t for t in workload(name).tensors if isinstance(t.op, te.PlaceholderOp)]
    return [rng.standard_normal([int(s) for s in t.shape]).astype("float32") for t in arrays]


def close(found: Any, expected: np.ndarray, tolerance: float = 1e-4) -> bool:
    """Whether the largest error is small against the largest value."""
    return bool(np.abs(np.asarray(found) - expected).max() <= tolerance * np.abs(expected).max())


# --- operators ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned:
    """One tuned operator that several tests look at, and the database that it was tuned into."""

    model: ansor.TunedModel
    database: Path

    def is_right(self, model: ansor.TunedModel) -> bool:
        """Whether a model has the results of the definition."""
        return close(model(*inputs_of(NAME)), workload(NAME).reference(*inputs_of(NAME)))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    path = tmp_path_factory.mktemp("tuned") / "r.db"
    tensors = list(workload(NAME).tensors)
    return Tuned(ansor.auto_schedule(tensors, trials=TRIALS, database=path, config=QUICK), path)


def test_te_tensors_are_tuned(tuned: Tuned) -> None:
    assert tuned.is_right(tuned.model)
    finish, (task,) = tuned.model.finish, tuned.model.tasks
    assert finish is not None
    assert finish.reason == "all trials spent"
    assert finish.trials == task.trials == TRIALS
    assert task.latency_s is not None
    assert task.difference is not None
    assert task.difference < 1e-4
    assert task.note == ""
    with Database(tuned.database) as database:
        assert database.count() == TRIALS


def test_a_second_run_without_a_budget_uses_what_won_the_comparison(tuned: Tuned) -> None:
    again = ansor.auto_schedule(list(workload(NAME).tensors), database=tuned.database, config=QUICK)
    assert tuned.is_right(again)
    assert again.finish is not None
    assert again.finish.trials == 0
    with Database(tuned.database) as database:
        assert database.count() == TRIALS, "nothing was measured"
        (entry,) = database.tasks()
        (target,) = database.targets(entry.key)
        records = database.best(entry.key, target, TRIALS)
        last = database.elected(entry.key, target)
    program = records[0].program if last is None else last.program  # or there was one leader
    (won,) = [record for record in records if record.program == program]
    assert again.tasks[0].sketch == won.program.sketch
    assert again.tasks[0].latency_s == won.latency_s


def test_a_saved_operator_comes_back(tuned: Tuned, tmp_path: Path) -> None:
    tuned.model.save(tmp_path / "tuned.ansor")
    loaded = ansor.load(tmp_path / "tuned.ansor")
    arrays = inputs_of(NAME)
    np.testing.assert_array_equal(loaded(*arrays), tuned.model(*arrays))
    assert loaded.tasks == tuned.model.tasks
    assert loaded.finish is None
    with pytest.raises(UnsupportedError, match="does not carry"):
        loaded.benchmark(min_time_s=0.01, untuned=True)


def test_it_takes_and_gives_torch_tensors(tuned: Tuned) -> None:
    torch = pytest.importorskip("torch")
    arrays = inputs_of(NAME)
    found = tuned.model(*map(torch.from_numpy, arrays))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), tuned.model(*arrays))
    assert isinstance(tuned.model(*arrays), np.ndarray)


def test_a_prim_func_without_trials() -> None:
    """The draft's choice alone: nothing is measured, the result is right."""
    definition, arrays = workload("softmax"), inputs_of("softmax")
    model = ansor.auto_schedule(definition.func, trials=0, config=QUICK)
    assert close(model(*arrays), definition.reference(*arrays))
    (task,) = model.tasks
    assert task.trials == 0
    assert task.latency_s is None
    assert task.sketch != "untuned"


# --- networks -------------------------------------------------------------------------------


def test_a_relax_network(tmp_path: Path) -> None:
    mod, weights = relax_net()
    x = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")
    tuned = ansor.auto_schedule(mod, trials=TRIALS, config=QUICK)
    assert close(tuned(x), net_in_numpy(weights, x))
    assert sum(task.trials for task in tuned.tasks) == TRIALS
    assert close(tuned.untuned(x), net_in_numpy(weights, x))
    benchmark = tuned.benchmark(min_time_s=0.05, untuned=True)
    assert benchmark.latency_s > 0
    assert benchmark.speedup is not None
    assert benchmark.speedup > 0
    report = tuned.report(benchmark)
    assert all(task.name in report for task in tuned.tasks)
    tuned.save(tmp_path / "net.ansor")
    np.testing.assert_array_equal(ansor.load(tmp_path / "net.ansor")(x), tuned(x))


@pytest.mark.slow
def test_several_networks_share_functions() -> None:
    class Recorder(Callback):
        tasks: Sequence[TaskStatus] = ()

        def on_start(self, start: Start) -> None:
            self.tasks = start.tasks

    mod, weights = relax_net()
    models = {"net": mod, "again": mod, "matmul": workload(NAME).func}
    recorder = Recorder()
    tuned = ansor.auto_schedule_many(models, trials=8, config=QUICK, callbacks=[recorder])
    names = [task.name for task in recorder.tasks]
    assert len(set(names)) == len(names)
    shared = [name for name in names if name.startswith("net/")]
    assert len(names) == len(shared) + 1
    assert "matmul/" in names[-1]
    assert all(task.weight == 2 for task in recorder.tasks[:-1])
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("float32")
    for name in ("net", "again"):
        assert close(tuned[name](x), net_in_numpy(weights, x))
        assert all(task.weight == 1 and "/" not in task.name for task in tuned[name].tasks)
    own = inputs_of(NAME)
    assert close(tuned["matmul"](*own), workload(NAME).reference(*own))
    assert "until: all trials spent" in tuned["again"].report()


@pytest.mark.slow
def test_variants_are_searched_unless_forbidden() -> None:
    mod, weights = relax_net()
    x = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype("float32")
    all_begin = replace(QUICK.scheduler, promise_margin=1e9, begin_margin=1e9)
    free = ansor.auto_schedule(mod, trials=20, config=replace(QUICK, scheduler=all_begin))
    direct = ansor.auto_schedule(mod, trials=4, allow=["winograd2"], forbid=["winograd2"])
    assert free.finish is not None
    (conv,) = (task for task in free.tasks if "conv2d" in task.name)
    trials = {s.name: s.trials for s in free.finish.tasks if s.group == conv.name}
    kinds = [name.split("_")[1] for name in trials]
    assert kinds == ["conv2d", "winograd2", "winograd3", "winograd4"]
    assert all(trials.values())
    assert conv.trials == sum(trials.values())
    assert {task.variant for task in direct.tasks} == {"direct"}
    for found in (free, direct):
        assert close(found(x), net_in_numpy(weights, x))
        assert all(task.difference is not None for task in found.tasks)


def test_an_interrupt_applies_the_best_so_far() -> None:
    class Interrupt(Callback):
        finish: Finish | None = None

        def on_round(self, done: Round) -> None:
            if done.number == 2:
                raise KeyboardInterrupt

        def on_finish(self, finish: Finish) -> None:
            self.finish = finish

    mod, weights = relax_net()
    x = np.random.default_rng(3).standard_normal((1, 3, 8, 8)).astype("float32")
    callback = Interrupt()
    tuned = ansor.auto_schedule(mod, trials=1000, config=SEARCHED, callbacks=[callback])
    assert tuned.finish is callback.finish
    assert tuned.finish is not None
    assert tuned.finish.reason == "interrupted"
    assert 0 < tuned.finish.trials < 1000
    assert all(task.sketch != "untuned" for task in tuned.tasks)
    assert close(tuned(x), net_in_numpy(weights, x))


@pytest.mark.usefixtures("interruptible")
def test_control_c_in_the_middle_of_a_measurement(tmp_path: Path) -> None:
    class Press(Callback):
        def on_start(self, start: Start) -> None:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

    definition, arrays = workload(NAME), inputs_of(NAME)
    with Database(tmp_path / "r.db") as database:
        model = ansor.auto_schedule(
            definition.func, minutes=2, database=database, config=SEARCHED, callbacks=[Press()]
        )
        assert model.finish is not None
        assert model.finish.reason == "interrupted"
        assert model.finish.trials == database.count(), "what was reported is recorded"
    assert model.tasks[0].sketch != "untuned"
    assert close(model(*arrays), definition.reference(*arrays))


def test_a_torch_network() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 4),
    ).eval()
    x = torch.randn(1, 3, 8, 8)
    tuned = ansor.auto_schedule(net, example_inputs=(x,), trials=TRIALS, config=QUICK)
    with torch.no_grad():
        assert close(tuned(x), net(x).numpy())
        assert close(tuned(x.numpy()), net(x).numpy())
    assert tuned.seed == 0


# --- bad input ------------------------------------------------------------------------------


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may get ready, but not work, and no machine may be measured."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("work has started")

    monkeypatch.setattr("ansor.run.measuring.LocalDevice", Idle)
    monkeypatch.setattr("ansor.run.session.backend_of", work)


class Idle(Closing):
    """A device that refuses to do anything."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None: ...

    def remote(self) -> None:
        """See `Device.remote`."""

    def start(self, count: int) -> None:
        assert count == 1

    def close(self) -> None: ...


@pytest.mark.usefixtures("idle")
def test_a_misspelt_argument_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ansor.ArgumentError, match=r"trails=4: no such argument; try trials"):
        ansor.auto_schedule(definition(), trails=4)


def test_help_shows_every_setting() -> None:
    for function in (ansor.auto_schedule, ansor.auto_schedule_many):
        parameters = inspect.signature(function).parameters
        assert {field.name for field in fields(Settings)} <= set(parameters)
        assert parameters["seed"].default == 0


def definition() -> tirx.PrimFunc:
    return workload("matmul").func


def dynamic() -> tvm.IRModule:
    """A Relax function whose input has a symbolic size."""
    builder, size = relax.BlockBuilder(), tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((size, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.relu(x))
        builder.emit_func_output(out)
    return builder.get()


def of_dtype(dtype: str) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 4), dtype))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.add(x, x))
        builder.emit_func_output(out)
    return builder.get()


def unknown_operator() -> tvm.IRModule:
    """Sorting has no compute definition, but a call to a library."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.unique(x))
        builder.emit_func_output(out)
    return builder.get()


BAD: dict[str, tuple[Callable[[], object], dict[str, Any], type[AnsorError], str]] = {
    "target": (definition, {"target": "nonsense"}, ArgumentError, "target='nonsense'"),
    "processor": (definition, {"target": "llvm -mcpu=no-such"}, ArgumentError, "target=.*no-such"),
    "no target": (definition, {"target": ""}, ArgumentError, "target=''"),
    "option": (definition, {"target": "llvm -mcpu"}, ArgumentError, "target="),
    "gpu": (definition, {"target": "cuda -arch=sm_35"}, UnsupportedError, "sm_35"),
    "name": (lambda: "resnet17", {}, ArgumentError, "model='resnet17'.*resnet18"),
    "kind": (lambda: 3, {}, ArgumentError, "model='int'"),
    "nothing": (list, {}, ArgumentError, "model="),
    "minutes": (definition, {"minutes": 0}, ArgumentError, "minutes=0"),
    "minus": (definition, {"minutes": -1.5}, ArgumentError, "minutes=-1.5"),
    "no function": (definition, {"objective": 3}, ArgumentError, "objective="),
    "slower": (definition, {"objective": lambda s: -s[0]}, ArgumentError, "objective=.*grow"),
    "nan": (definition, {"minutes": float("nan")}, ArgumentError, "minutes=nan"),
    "trials": (definition, {"trials": -1}, ArgumentError, "trials=-1"),
    "half a trial": (definition, {"trials": 1.5}, ArgumentError, "trials=1.5"),
    "no threads": (definition, {"threads": 0}, ArgumentError, "threads=0"),
    "threads": (definition, {"threads": 10**6}, ArgumentError, "threads=1000000"),
    "policy": (definition, {"policy": "annealing"}, ArgumentError, "policy='annealing'.*xgb-sa"),
    "variant": (definition, {"forbid": ["fft"]}, ArgumentError, "forbid='fft'.*winograd4"),
    "variant's name": (definition, {"allow": "winograd2"}, ArgumentError, "allow='winograd2'"),
    "dynamic": (dynamic, {}, UnsupportedError, "'x'.*dimension 0.*dynamic"),
    "dtype": (lambda: of_dtype("float8_e4m3fn"), {}, UnsupportedError, "'x'.*float8_e4m3fn"),
    "operator": (unknown_operator, {}, UnsupportedError, "unique"),
}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_before_any_work(case: str) -> None:
    model, arguments, kind, message = BAD[case]
    with pytest.raises(kind, match=message):
        ansor.auto_schedule(model(), **arguments)


@pytest.mark.parametrize(
    ("models", "inputs", "named"),
    [
        ([definition], {}, "models="),
        ({}, {}, "models="),
        ({"a": "resnet17"}, {}, "model='resnet17'"),
        ({"a": "resnet18"}, {"b": 1}, "example_inputs="),
    ],
)
@pytest.mark.usefixtures("idle")
def test_several_networks_come_by_name(models: Any, inputs: Any, named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        ansor.auto_schedule_many(models, trials=1, example_inputs=inputs)


@pytest.mark.usefixtures("idle")
def test_a_torch_module_needs_example_inputs() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match="example_inputs"):
        ansor.auto_schedule(torch.nn.Linear(4, 4), trials=1)


@pytest.mark.usefixtures("idle")
def test_a_database_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "folder" / "r.db"
    with pytest.raises(DatabaseError, match="database="):
        ansor.auto_schedule(definition(), database=path, trials=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("idle")
def test_a_file_that_is_not_ours(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "songs.db"
    text.write_text("dear diary " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.commit()
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(DatabaseError, match=r"database=.*left as it is"):
            ansor.auto_schedule(definition(), database=path, trials=1)
        assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"notes.txt", "songs.db"}


@pytest.mark.usefixtures("idle")
def test_records_of_another_target_only(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "r.db", '{"kind":"llvm","mcpu":"elsewhere"}'
    with Database(path) as database:
        # The graph of the definition as the frontend sees it, which is what keys the records.
        wrapped = prepare_network(definition(), tvm.target.Target("llvm"), elsewhere).tasks[0]
        task = Task(wrapped.name, wrapped.func, wrapped.dag, elsewhere)
        database.add(task, Program(), successful_measurement((1e-3,), 0.0, 0.0))
    with pytest.raises(ArgumentError, match=r"database=.*elsewhere"):
        ansor.auto_schedule(definition(), database=path)
    with Database(path) as database:
        assert database.count() == 1
