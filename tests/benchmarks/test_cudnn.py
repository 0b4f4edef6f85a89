"""The comparison with cuDNN, as far as a machine without a GPU allows."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tvm
from click.testing import CliRunner
from gpu import GPU, TARGET, legal_sample, on_cpu, on_tensor_cores, sketches_of

from ansor.compare.system_process import ChildError
from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.build import ENTRY, compile_function
from ansor.targets.cuda.target import rounds_to_tf32
from benchmarks import cudnn, operator_peers
from benchmarks.cudnn import (
    Row,
    has_peers,
    known_rows,
    main,
    measure,
    parse_gpu_peers,
    table,
    target_of,
)
from benchmarks.gpu_peers import metaschedule_program, metaschedule_target
from benchmarks.operator_case import Case, workload_of
from benchmarks.operator_peers import Peers

DONE = Row("C2D.2", 1, "float32", 231211008, 20.0, {"torch": 30.0, "torch_channels_last": 26.0})


def test_the_best_form_counts() -> None:
    assert DONE.best_peer == ("torch_channels_last", 26.0)
    assert DONE.speedup == pytest.approx(1.3)
    slower = Row("GMM.3", 16, "float32", 10**9, 20.0, {"torch": 10.0}, max_rel_err=1e-6)
    text = table([Row(**{**asdict(DONE), "max_rel_err": 2e-7}), slower])
    assert "geometric mean 0.81 x, least 0.50 x, of 2" in text
    assert "11.56" in text  # TFLOP/s


def test_finished_operators_are_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    failed = Row("GMM.0", 1, "float32", 1, error="UnsupportedError: no GPU")
    file.write_text(json.dumps({"results": [asdict(DONE), asdict(failed)]}))
    assert known_rows(str(file)) == {("C2D.2", 1, "float32"): DONE}
    assert known_rows(str(tmp_path / "none.json")) == {}
    assert known_rows(None) == {}


def test_operators_are_measured_again_for_new_peers() -> None:
    both = Peers(("torch", "metaschedule"))
    assert has_peers(DONE, Peers(("torch",)))
    assert not has_peers(DONE, both)
    assert has_peers(replace(DONE, missing={"metaschedule": "nothing was found"}), both)
    assert not has_peers(None, both)


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_without_a_gpu_it_ends_before_it_begins() -> None:
    found = CliRunner().invoke(main, ["--target", "cuda -arch=sm_90", "--ops", "GMM.0"])
    assert isinstance(found.exception, UnsupportedError)
    assert "no NVIDIA GPU" in str(found.exception)


@pytest.mark.skipif(tvm.runtime.cuda(0).exist, reason="there is a GPU")
def test_an_operator_that_fails_is_a_row() -> None:
    target = tvm.target.Target(TARGET)
    row = measure("GMM.0", 1, "float32", target, {"trials": 1}, 1)
    assert row.error.startswith("UnsupportedError: target cuda")
    assert "no NVIDIA GPU" in table([row])


def test_a_wrong_dtype_is_named() -> None:
    found = CliRunner().invoke(main, ["--dtypes", "int4"])
    assert isinstance(found.exception, ArgumentError)
    assert "float32, float16, tf32" in str(found.exception)
    with pytest.raises(ArgumentError, match=r"dtype='float16': NRM\.2 is of no family"):
        workload_of("NRM.2", dtype="float16")


@pytest.mark.parametrize("op", ["GMM.0", "C2D.3"])
def test_products_in_float16_go_to_tensor_cores(op: str) -> None:
    workload = workload_of(op, dtype="float16")
    inputs = workload.inputs(np.random.default_rng(0))
    sketches = [s for s in sketches_of(workload.func) if on_tensor_cores(s)]
    func = on_cpu(workload.func, legal_sample(sketches[0], 1).program(0))
    expected = workload.reference(*inputs)
    out = tvm.runtime.tensor(np.zeros(expected.shape, dtype=np.float32))
    compile_function(func, "llvm")[ENTRY](*map(tvm.runtime.tensor, inputs), out)
    assert np.abs(out.numpy() - expected).max() <= 1e-4 * np.abs(expected).max()


BOTH = Peers(("torch", "metaschedule"), 200)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A GPU that pretends; what it was asked to tune and to time."""
    asked: list[tuple[str, ...]] = []

    def tuned(tensors: Any, target: tvm.target.Target, **_: Any) -> Any:
        asked.append(("tune", str(tensors[0].dtype), str(rounds_to_tf32(target))))
        functions = {"main": workload_of("GMM.0").func}
        module = SimpleNamespace(mod=SimpleNamespace(functions=functions))
        return SimpleNamespace(compiled=module, tasks=[SimpleNamespace(trials=7)])

    def tvm_run(_: Any, __: Any, ___: Any, target: str, exact: bool = False) -> Any:
        asked.append(("time", "metaschedule" if exact else "ansor", target))
        return (lambda: 3e-6 if exact else 2e-6), 1e-6

    def torch_run(_: str, __: Any, channels_last: bool, tf32: bool) -> Any:
        asked.append(("time", f"torch_channels_last={channels_last}", f"tf32={tf32}"))
        return lambda: 4e-6

    def program(case: Case) -> Any:
        asked.append(("tune", "metaschedule", f"{case.trials} {case.cache} {case.dtype}"))
        return None, {"tuning_s": 60.0, "trials": case.trials}

    fakes = (("auto_schedule", tuned), ("tvm_run", tvm_run), ("torch_run", torch_run))
    for name, fake in (*fakes, ("metaschedule_program", program)):
        monkeypatch.setattr(cudnn, name, fake)
    return asked


def test_metaschedules_program_is_timed_with_ours(timed: list[tuple[str, ...]]) -> None:
    target = tvm.target.Target(TARGET)
    row = measure("GMM.0", 1, "float32", target, {}, 2, BOTH, "here")
    assert (row.ansor_us, row.trials) == (pytest.approx(2.0), 7)
    assert row.peers_us == {"torch": pytest.approx(4.0), "metaschedule": pytest.approx(3.0)}
    assert row.peers_tuning_s == {"metaschedule": 60.0}
    assert not row.missing
    assert ("tune", "metaschedule", "200 here float32") in timed
    assert ("time", "torch_channels_last=False", "tf32=False") in timed
    text = table([row])
    assert "metaschedule: geometric mean 1.50 x, least 1.50 x, of 1" in text
    assert "torch: geometric mean 2.00 x" in text


def test_without_the_option_nothing_but_pytorch_is_timed(timed: list[tuple[str, ...]]) -> None:
    row = measure("GMM.0", 1, "float32", tvm.target.Target(TARGET), {}, 1)
    assert set(row.peers_us or {}) == {"torch"}
    assert not any("metaschedule" in asked for asked in timed)
    assert "torch:" not in table([row])


def test_metaschedule_may_fail(
    timed: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Case) -> Any:
        raise ChildError("no program after 200 trials")

    monkeypatch.setattr(cudnn, "metaschedule_program", failing)
    row = measure("GMM.0", 1, "float16", tvm.target.Target(TARGET), {}, 1, BOTH)
    assert row.missing == {"metaschedule": "no program after 200 trials"}
    assert set(row.peers_us or {}) == {"torch"}
    assert ("tune", "float16", "False") in timed


def test_tf32_is_allowed_to_all_or_to_none(timed: list[tuple[str, ...]]) -> None:
    measure("C2D.3", 1, "tf32", tvm.target.Target(TARGET), {}, 1)
    assert timed[0] == ("tune", "float32", "True")
    assert '"keys":["cuda","gpu","tf32"]' in timed[1][-1]
    last = [f"torch_channels_last={value}" for value in (False, True)]
    assert timed[2:] == [("time", name, "tf32=True") for name in last]
    with pytest.raises(ArgumentError, match=r"sm_75 know no tf32"):
        target_of("tf32", tvm.target.Target('{"arch":"sm_75","kind":"cuda"}'))
    found = CliRunner().invoke(main, ["--target", "cuda -arch=sm_90 -tf32"])
    assert isinstance(found.exception, ArgumentError)
    assert "--dtypes tf32" in str(found.exception)


def test_peers_of_a_gpu() -> None:
    assert parse_gpu_peers("torch,metaschedule:200") == BOTH
    with pytest.raises(ArgumentError, match="peers='zero'"):
        parse_gpu_peers("zero")


def test_metaschedule_is_told_the_limits_of_the_gpu() -> None:
    attributes = tvm.target.Target(metaschedule_target(GPU)).attrs
    assert attributes["max_shared_memory_per_block"] == GPU.shared_per_block
    assert attributes["max_threads_per_block"] == GPU.threads_per_block
    other = metaschedule_target(replace(GPU, name="another with the same architecture"))
    assert other != metaschedule_target(GPU)  # what was found for one is not taken for the other


@pytest.mark.slow
def test_metaschedules_tuning_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []

    def tune(func: Any, target: Any, folder: str, trials: int, **_: Any) -> None:
        searches.append(trials)

    database = SimpleNamespace(JSONDatabase=lambda work_dir: work_dir)
    found = SimpleNamespace(mod={"main": workload_of("GMM.0").func})
    integration = SimpleNamespace(compile_tir=lambda *_: found)
    fake: Any = ModuleType("meta_schedule")
    fake.tune_tir, fake.database, fake.tir_integration = tune, database, integration
    pytest.importorskip("cloudpickle")
    from benchmarks import metaschedule_child, peers_metaschedule

    monkeypatch.setattr(peers_metaschedule, "meta_schedule", fake)
    monkeypatch.setattr(metaschedule_child, "compiler_variables", dict)

    def child(arguments: Any, threads: int, timeout_s: float, first_path: Any) -> None:
        assert arguments[:2] == ["-m", "benchmarks.metaschedule_child"]
        assert (Path(first_path[0]) / "torch.py").exists()
        metaschedule_child.run(Case(**json.loads(arguments[2])))

    monkeypatch.setattr(operator_peers, "run_child", child)
    folder, cache = tmp_path / "case", tmp_path / "cache"
    folder.mkdir()
    target = metaschedule_target(GPU)
    case = Case("GMM.0", 1, str(folder), target, 2, trials=200, cache=str(cache))
    (first, notes), (second, again) = (metaschedule_program(case) for _ in range(2))
    assert searches == [200]
    assert notes == again
    assert (notes["trials"], notes["tuning_s"] >= 0) == (200, True)
    assert first.script() == second.script() == workload_of("GMM.0").func.script()
    metaschedule_program(replace(case, dtype="float16"))
    assert len(searches) == 2
