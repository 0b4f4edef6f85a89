"""Traces that MetaSchedule or a user made: as one program, as a space, and from a database."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
from tvm import s_tir, te, tirx
from tvm.s_tir import meta_schedule
from tvm.target import Target

import ansor
from ansor.errors import ArgumentError, LoweringError, TemplateMismatchError
from ansor.frontend.deploy.metaschedule import workload
from ansor.templates.imported_trace import ImportedTrace, json_text
from ansor.templates.metaschedule_records import recorded_traces

SIZE = 32
ONES = np.ones((SIZE, SIZE), dtype=np.float32)
TARGET = Target({"kind": "llvm", "num-cores": 2})


def matmul(size: int = SIZE) -> list[te.Tensor]:
    a, b = (te.placeholder((size, size), name=name) for name in "ab")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    return [a, b, c]


def func(size: int = SIZE) -> tirx.PrimFunc:
    return te.create_prim_func(matmul(size))


def sampled(inner: int = 4) -> s_tir.Trace:
    """A trace with one tile and one category, as a design space of MetaSchedule makes them."""
    sch = s_tir.Schedule(workload(func()))
    loop = sch.get_loops(sch.get_sblock("c"))[1]
    outer, tile = sch.split(loop, sch.sample_perfect_tile(loop, 2, 16, [SIZE // inner, inner]))
    sch.annotate(outer, "pragma_auto_unroll_max_step", sch.sample_categorical([0, 16], [0.5, 0.5]))
    sch.vectorize(tile)
    return sch.trace


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two programs of one function."""
    folder = tmp_path_factory.mktemp("metaschedule")
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    kept = database.commit_workload(workload(func()))
    for inner, seconds in ((4, 2e-3), (8, 1e-3)):
        record = meta_schedule.database.TuningRecord(sampled(inner), kept, [seconds], TARGET, [])
        database.commit_tuning_record(record)
    return folder


def test_a_trace_is_one_program() -> None:
    given = ansor.import_trace(sampled())
    (schedule,) = (given.fitted(func()),)
    assert schedule.decisions == ()
    tuned = ansor.auto_schedule(matmul(), trials=8, templates=[given], sketches=False)
    assert tuned.finish is not None
    assert tuned.finish.trials == 1
    assert np.allclose(tuned(ONES, ONES), SIZE)
    assert tuned.programs is not None
    (name,) = tuned.programs.of
    printed = tuned.programs.trace(name).as_python()
    assert any("sample_perfect_tile" in line and "decision=[8, 4]" in line for line in printed)


def test_the_samples_of_a_trace_may_be_knobs() -> None:
    schedule = ansor.import_trace(sampled(), knobs=True).fitted(func())
    assert [decision.size for decision in schedule.decisions] == [5, 2]
    names = [decision.name for decision in schedule.decisions]
    values = {names[0]: (16, 2), names[1]: (1,)}
    printed = "\n".join(schedule.trace(func(), values).as_python())
    assert "decision=[16, 2]" in printed
    again = s_tir.Schedule(workload(func()))
    schedule.trace(func(), values).apply_to_schedule(again, remove_postproc=False)
    expected = schedule.apply(func(), values)
    assert again.mod["main"].body.script() == expected.body.script()


@pytest.mark.slow
def test_a_space_of_a_trace_is_searched() -> None:
    given = ansor.import_trace(sampled(), knobs=True)
    tuned = ansor.auto_schedule(matmul(), trials=4, templates=[given], sketches=False)
    assert tuned.finish is not None
    assert tuned.finish.trials == 4
    assert np.allclose(tuned(ONES, ONES), SIZE)


def test_a_trace_that_does_not_replay_is_refused_with_the_reason() -> None:
    text = json_text(sampled()).replace('"c"', '"d"')
    with pytest.raises(TemplateMismatchError, match="the trace does not replay"):
        ImportedTrace(text).fitted(func())
    with pytest.raises(ArgumentError, match=r"it fits no function of the model.*does not replay"):
        ansor.auto_schedule(matmul(), trials=1, templates=[ImportedTrace(text)])


def test_an_attribute_without_a_value_is_refused() -> None:
    """TVM would end the process."""
    instructions, decisions = json.loads(json_text(sampled()))
    split = next(each for each in instructions if each[0] == "Split")
    split[2] = [None for _ in split[2]]
    with pytest.raises(TemplateMismatchError, match="an attribute of Split has no value"):
        ImportedTrace(json.dumps([instructions, decisions])).fitted(func())


@pytest.mark.parametrize("number", [-1, 1, 7, None, "0", 0.5])
def test_a_record_of_no_function_of_the_database_is_refused(
    records: Path, tmp_path: Path, number: object
) -> None:
    """TVM's reader would end the process."""
    for file in records.iterdir():
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        if "tuning_record" in file.name:
            lines[0][0] = number
        (tmp_path / file.name).write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ArgumentError, match=r"seeds=.*a record of function"):
        recorded_traces(tmp_path, [func()])


def test_a_changed_function_of_a_database_is_refused(records: Path, tmp_path: Path) -> None:
    for file in records.iterdir():
        text = file.read_text()
        if "workload" in file.name:
            digest, module = json.loads(text)
            data = base64.b64decode(module).replace(b"float32", b"float16")
            text = json.dumps([digest, base64.b64encode(data).decode()])
        (tmp_path / file.name).write_text(text)
    with pytest.raises(ArgumentError, match=r"seeds=.*not the one that was written"):
        recorded_traces(tmp_path, [func()])


def test_other_decisions_may_not_replay() -> None:
    schedule = ansor.import_trace(sampled(), knobs=True).fitted(func())
    with pytest.raises(LoweringError, match="the trace does not replay"):
        schedule.apply(func(), {schedule.decisions[0].name: (16, 2, 1)})


def test_a_trace_of_another_function_or_no_trace() -> None:
    with pytest.raises(TemplateMismatchError, match="of another function"):
        ansor.import_trace(sampled(), func(64)).fitted(func())
    with pytest.raises(ArgumentError, match="give a trace"):
        ansor.import_trace("sch.split(...)")  # type: ignore[arg-type]


def test_records_are_seeds(records: Path) -> None:
    found = recorded_traces(records, [func(), func(64)])
    assert [each.knobs for each in found] == [False, True, False]
    assert "[4, 8]" in found[0].text, "the fastest first"
    tuned = ansor.auto_schedule(matmul(), trials=6, seeds=records)
    assert np.allclose(tuned(ONES, ONES), SIZE)


def test_our_traces_are_seeds_again(tmp_path: Path) -> None:
    tuned = ansor.auto_schedule(matmul(), trials=0)
    tuned.export_metaschedule(tmp_path, traces=True)
    again = ansor.auto_schedule(matmul(), trials=2, seeds=tmp_path, sketches=False)
    assert np.allclose(again(ONES, ONES), SIZE)


def test_seeds_that_are_of_no_use(records: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="none of its 1 functions with records is a function"):
        recorded_traces(records, [func(64)])
    with pytest.raises(ArgumentError, match="give a folder with database_workload"):
        ansor.auto_schedule(matmul(), trials=1, seeds=tmp_path)
    for file in records.iterdir():
        text = file.read_text().replace("SamplePerfectTile", "SampleImperfectTile")
        (tmp_path / file.name).write_text(text)
    with pytest.raises(ArgumentError, match="TVM cannot read it, or a trace in it"):
        recorded_traces(tmp_path, [func()])


@pytest.mark.parametrize("language", ["llvm", "c"])
def test_a_trace_that_brings_code_along_is_refused(tmp_path: Path, language: str) -> None:
    sch = s_tir.Schedule(workload(func()))
    loop = sch.get_loops(sch.get_sblock("c"))[0]
    sch.annotate(loop, f"pragma_import_{language}", "define i32 @other() { ret i32 1 }")
    with pytest.raises(ArgumentError, match="brings code along"):
        ansor.import_trace(sch)
    database = meta_schedule.database.JSONDatabase(work_dir=str(tmp_path))
    kept = database.commit_workload(workload(func()))
    record = meta_schedule.database.TuningRecord(sch.trace, kept, [1.0], TARGET, [])
    database.commit_tuning_record(record)
    with pytest.raises(ArgumentError, match="brings code along"):
        recorded_traces(tmp_path, [func()])
