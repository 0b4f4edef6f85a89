"""Templates and schedule functions on this machine: right results, failures, records, networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from hand_schedules import matmul_tensors, sampled_matmul, tiled_conv2d, tiled_matmul
from tvm import relax, te

import ansor
from ansor.callbacks import Callback, Round
from ansor.database.database import Database
from ansor.errors import ArgumentError, TemplateMismatchError
from ansor.run.prepare import Network, prepare_network
from ansor.run.templates import offered
from ansor.targets.target import resolve_target
from ansor.templates.template import offers

RNG = np.random.default_rng(0)


class Errors(Callback):
    """Counts the failures of a run by their kind."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.message = ""

    def on_round(self, done: Round) -> None:
        self.message = next(iter(done.new_errors.values()), self.message)
        for kind, count in done.errors.items():
            self.counts[kind] = self.counts.get(kind, 0) + count


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def relu_conv2d(data: Any, weight: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 3), axis=(1, 2))
    return np.maximum(np.einsum("nyxcij,ijcf->nyxf", windows, weight), 0)


def test_a_matmul_is_right_and_its_records_serve_a_run_without_trials(tmp_path: Path) -> None:
    records = tmp_path / "records.ansor"
    tuned = ansor.auto_schedule(tiled_matmul(32, 48, 24), trials=6, database=records)
    a, b = drawn(32, 24), drawn(24, 48)
    np.testing.assert_allclose(tuned(a, b), a @ b, rtol=1e-4, atol=1e-4)
    (result,) = tuned.tasks
    assert result.trials == 6
    again = ansor.auto_schedule(tiled_matmul(32, 48, 24), database=records)
    assert again.tasks[0].sketch == result.sketch
    np.testing.assert_allclose(again(a, b), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_a_conv2d_is_right() -> None:
    tuned = ansor.auto_schedule(tiled_conv2d(8, 8, 32), trials=6)
    data, weight = drawn(1, 10, 10, 8), drawn(3, 3, 8, 32)
    np.testing.assert_allclose(tuned(data, weight), relu_conv2d(data, weight), 1e-4, 1e-4)


def half_illegal(sch: ansor.Schedule) -> None:
    """A reduction cannot be a vector."""
    loops = sch.get_loops(sch.get_sblock("C"))
    number = sch.sample_categorical([0, 1, 2, 1, 2], name="vector")
    sch.vectorize(loops[int(sch.get(number))])


def test_an_illegal_program_is_a_failed_record() -> None:
    errors = Errors()
    with Database() as records:
        tuned = ansor.auto_schedule(
            matmul_tensors(8, 16, 4),
            trials=5,
            templates=[half_illegal],
            sketches=False,
            database=records,
            callbacks=[errors],
        )
    assert errors.counts == {"lower": 2}
    assert "ScheduleError" in errors.message
    a, b = drawn(8, 4), drawn(4, 16)
    np.testing.assert_allclose(tuned(a, b), a @ b, rtol=1e-4, atol=1e-4)


def never_legal(sch: ansor.Schedule) -> None:
    _, _, r = sch.get_loops(sch.get_sblock("C"))
    sch.sample_perfect_tile(r, 2)
    sch.vectorize(r)


def test_a_schedule_without_legal_programs_leaves_the_definition() -> None:
    tuned = ansor.auto_schedule(
        matmul_tensors(8, 16, 4), trials=2, templates=[never_legal], sketches=False
    )
    a, b = drawn(8, 4), drawn(4, 16)
    np.testing.assert_allclose(tuned(a, b), a @ b, rtol=1e-4, atol=1e-4)


@ansor.template("squared")
def squared(cfg: Any, sch: ansor.Schedule) -> None:
    """Of tasks with a block `square` alone."""
    (loop, *_) = sch.get_loops(sch.get_sblock("square"))
    cfg.split("tile", loop, 2).apply(sch, loop)


def imported(model: Any) -> Network:
    return prepare_network(model, resolve_target("llvm"), "llvm", kinds=())


def squares() -> Network:
    x = te.placeholder((16, 8), name="x")
    return imported([x, te.compute((16, 8), lambda i, j: x[i, j] * x[i, j], name="square")])


@pytest.mark.parametrize("alone", [False, True])
def test_a_template_is_offered_to_the_functions_that_it_fits(alone: bool) -> None:
    networks = {"squares": squares(), "product": imported(matmul_tensors(8, 16, 4))}
    found = offered(networks, offers([squared]), alone)
    assert [task.by_hand for task in found["product"].tasks] == [None]
    tasks = found["squares"].tasks
    assert [task.by_hand is not None for task in tasks] == ([True] if alone else [False, True])
    assert {task.original is None for task in tasks} == ({True} if alone else {True, False})
    assert len({task.key for task in tasks}) == len(tasks)


def test_a_template_that_fits_nothing_is_refused_with_the_reasons() -> None:
    networks = {"product": imported(matmul_tensors(8, 16, 4))}
    with pytest.raises(ArgumentError, match=r"squared.*fits no function.*no block 'square'"):
        offered(networks, offers([squared]), alone=False)


def test_a_template_with_arguments_fits_what_computes_the_same() -> None:
    call = tiled_matmul(8, 16, 4)
    assert call.fitted(call.definition) is call.schedule
    with pytest.raises(TemplateMismatchError):
        call.fitted(tiled_matmul(8, 16, 8).definition)


def test_templates_are_for_float32() -> None:
    with pytest.raises(ArgumentError, match="templates need"):
        ansor.auto_schedule(
            matmul_tensors(8, 16, 4), trials=1, templates=[sampled_matmul], precision="auto"
        )
    with pytest.raises(ArgumentError, match="list of templates"):
        ansor.auto_schedule(matmul_tensors(8, 16, 4), templates=sampled_matmul)


def by_rows(sch: ansor.Schedule) -> None:
    """Of functions with a product alone."""
    loop, *_ = sch.get_loops(sch.get_sblock("matmul"))
    sch.parallel(sch.split(loop, sch.sample_perfect_tile(loop, 2))[0])


def two_layers() -> tvm.IRModule:
    """A product with ReLU, and a product with softmax."""
    weight = relax.const(np.full((16, 16), 0.1, np.float32))
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType([16, 16], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            second = builder.emit(relax.op.nn.softmax(relax.op.matmul(first, weight)))
            out = builder.emit_output(second)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.slow
def test_a_network_takes_the_schedule_where_it_fits() -> None:
    tuned = ansor.auto_schedule(two_layers(), trials=8, templates=[by_rows], sketches=False)
    by_hand = [task for task in tuned.finish.tasks if task.key.endswith("by_rows")]
    assert 0 < len(by_hand) < len(tuned.finish.tasks)
    x = drawn(16, 16)
    hidden = np.maximum(x @ np.full((16, 16), 0.1), 0) @ np.full((16, 16), 0.1)
    exps = np.exp(hidden - hidden.max(axis=1, keepdims=True))
    np.testing.assert_allclose(tuned(x), exps / exps.sum(axis=1, keepdims=True), 1e-4, 1e-4)
