"""Networks for plain TVM: its own passes find the records, apply them, and compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.s_tir import meta_schedule

import ansor
from ansor.errors import ArgumentError
from ansor.frontend.deploy.metaschedule import NETWORK_FILE
from ansor.lowering.trace import left_out
from ansor.models import ResNetConfig, build_from_config
from ansor.run.tuned.tuned_model import TunedModel

IMAGE = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)


@pytest.fixture(scope="module")
def tuned() -> TunedModel:
    """A small residual network with the programs that the draft prefers."""
    built = build_from_config(ResNetConfig((1,), width=16, classes=10, image=32), "tiny", seed=1)
    mod = relax.transform.BindParams("forward", dict(built.params))(built.mod)
    return ansor.auto_schedule(mod, trials=0, threads=2)


def in_plain_tvm(folder: Path) -> np.ndarray:
    """The results of the written network, by TVM's passes alone."""
    mod = tvm.ir.load_json((folder / NETWORK_FILE).read_text())
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    target = database.get_all_tuning_records()[0].target
    with target, database:
        mod = relax.transform.MetaScheduleApplyDatabase(enable_warning=True)(mod)
        functions = [f for f in mod.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
        assert all(f.attrs.get("tirx.is_scheduled") for f in functions)
        mod = relax.transform.SplitLayoutRewritePreproc()(mod)
        mod = relax.transform.FoldConstant()(mod)
        machine = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
    return np.asarray(machine["forward"](tvm.runtime.tensor(IMAGE)).numpy())


@pytest.mark.parametrize("traces", [False, True])
def test_plain_tvm_applies_the_records(tuned: TunedModel, traces: bool, tmp_path: Path) -> None:
    expected = tuned(IMAGE)
    assert tuned.export_metaschedule(tmp_path, traces) > 5
    difference = np.abs(in_plain_tvm(tmp_path) - expected).max()
    assert difference <= 1e-5 * np.abs(expected).max()


def test_a_folder_with_records_is_left_alone(tuned: TunedModel, tmp_path: Path) -> None:
    tuned.export_metaschedule(tmp_path)
    with pytest.raises(ArgumentError, match="it has records already; give a new folder"):
        tuned.export_metaschedule(tmp_path)


def test_a_loaded_network_has_no_traces(tuned: TunedModel, tmp_path: Path) -> None:
    tuned.save(tmp_path / "tiny.ansor")
    loaded = ansor.load(tmp_path / "tiny.ansor", threads=2)
    with pytest.raises(ArgumentError, match="tune it with its database"):
        loaded.export_metaschedule(tmp_path / "traces", traces=True)
    assert loaded.export_metaschedule(tmp_path / "final") > 5


def test_a_program_prints_as_python(tuned: TunedModel) -> None:
    assert tuned.programs is not None
    text = "\n".join(tuned.programs.trace("max_pool2d").as_python())
    assert "sch.get_sblock(" in text
    assert "sch.vectorize(" in text
    with pytest.raises(ArgumentError, match="function='conv': give one of"):
        tuned.programs.trace("conv")


def test_what_a_trace_leaves_out_has_a_name(tuned: TunedModel) -> None:
    assert tuned.programs is not None
    parts = {part for task, p in tuned.programs.of.values() for part in left_out(task.func, p)}
    assert parts <= {"shifted tails", "packed panels", "prefetches", "skipped padding"}
    assert "prefetches" in parts
