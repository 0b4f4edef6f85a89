"""Operators beside other systems: small ones, or children that only pretend."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from definitions import SMALL_SUITE
from pretended_operators import Pretending, run

from ansor.compare.system_process import ChildError
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.variants import KINDS
from ansor.workloads.opevo import convolution_nchw, product
from ansor.workloads.suite import FAMILIES, PRODUCTS
from ansor.workloads.workload import Workload
from benchmarks import operator_child, operators
from benchmarks.operator_case import Case
from benchmarks.operator_peers import Peers, parse_peers, start, systems_for

pytestmark = pytest.mark.usefixtures("quiet_machine")

KEYS = {
    *("op", "dtype", "system", "latency_us", "to_own", "gflops", "peak_gflops", "of_peak"),
    *("tuning_s", "trials", "max_rel_err"),
}
OPEVO = {
    "OPE.3": product("x", 3, 8, 6, 10),
    "OPE.4": product("x", 3, 8, 6, 10, "A"),
    "OPE.5": product("x", 3, 8, 6, 10, "B"),
    "OPE.6": convolution_nchw("x", 2, 3, 15, 8, 11, 4, 0),
    "OPE.7": convolution_nchw("x", 2, 4, 9, 8, 5, 1, 2),
}


@pytest.mark.slow
def test_members_of_the_suite_are_compared_with_pytorch(tmp_path: Path) -> None:
    found = run(tmp_path, "--ops", "DEP.3", "--trials", "2", "--peers", "zero,torch")
    rows = {row["system"]: row for row in found["results"]}
    assert list(rows) == ["ansor", "zero", "torch", "torch_channels_last"]
    assert [row.pop("variant", None) for row in rows.values()] == ["direct", "direct", None, None]
    assert found["environment"]["peak_gflops"] == 100.0
    if find_spec("torch") is None:
        assert rows.pop("torch")["error"] == rows.pop("torch_channels_last")["error"]
    for row in rows.values():
        assert set(row) - {"best_so_far"} == KEYS
        assert row["max_rel_err"] < 1e-5
        operations = 2 * 7 * 7 * 1024 * 9
        assert row["gflops"] == pytest.approx(operations / row["latency_us"] / 1e3)
    assert (rows["ansor"]["trials"], rows["zero"]["trials"]) == (2, 0)
    assert min(rows["ansor"]["tuning_s"], rows["zero"]["tuning_s"]) > 0
    assert len({row["peak_gflops"] for row in rows.values()}) == 1
    assert rows["ansor"]["peak_gflops"] > 1
    assert rows["ansor"]["to_own"] == 1.0
    assert all(0 < row["of_peak"] < 1 for row in rows.values())


@pytest.mark.slow
def test_other_algorithms_are_told_from_the_definition_s_own(tmp_path: Path) -> None:
    options = ("--trials", "2", "--peers", "direct", "--rounds", "1")
    found = run(tmp_path, "--ops", "conv2d:height=8;width=8;channels=8;filters=8", *options)
    rows = {row["system"]: row for row in found["results"]}
    assert rows["direct"]["variant"] == "direct"
    assert rows["ansor"]["variant"] in {"direct", *KINDS}
    assert all(row["max_rel_err"] < 1e-4 for row in rows.values())


@pytest.mark.slow
def test_an_operator_that_fails_is_reported_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = operators.auto_schedule

    def failing(tensors: Any, **options: Any) -> Any:
        if len(tensors) == 2:
            raise UnsupportedError("block S: out of order\nand more", "order it")
        return schedule(tensors, **options)

    monkeypatch.setattr(operators, "auto_schedule", failing)
    ops = "NRM.0,matmul:rows=16;columns=16;depth=16"
    first, second = run(tmp_path, "--ops", ops, "--trials", "0")["results"]
    assert first["error"] == "UnsupportedError: block S: out of order"
    assert first["latency_us"] is None
    assert set(second) == KEYS | {"variant"}
    assert second["max_rel_err"] < 1e-5


def test_a_peer_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = operators.Row("NRM.0", "ansor", tuning_s=1.0, trials=0)
    monkeypatch.setattr(operators, "_tuned", lambda *_: tuned)
    monkeypatch.setattr(operators, "start", Pretending)
    options = ("--ops", "NRM.0", "--trials", "0", "--peers", "torch,metaschedule:8")
    ansor, torch, other = run(tmp_path, *options)["results"]
    assert ansor["latency_us"] == 2e6
    assert (ansor["to_own"], torch["to_own"]) == (1.0, 3.0)
    assert ansor["peak_gflops"] == torch["peak_gflops"] == 100.0
    assert ansor["of_peak"] == pytest.approx(ansor["gflops"] / 100.0)
    assert ansor["max_rel_err"] == 1.0
    assert other["error"] == "no program after 8 trials"
    assert other["latency_us"] is None


def test_a_child_that_dies_says_why(tmp_path: Path) -> None:
    case = Case("NRM.0", 1, str(tmp_path), "llvm", 1)
    with start(case, "nothing") as child, pytest.raises(ChildError, match="KeyError: 'nothing'"):
        child.ask("ready")


def test_the_output_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("NRM.0", 1, str(tmp_path), "llvm", 1)
    for value in (1.0, 2.0):
        made = (np.float32([value]), {"trials": 3}, lambda value=value: {"latency_s": value})
        monkeypatch.setattr(operator_child, "SYSTEMS", {"x": lambda _, made=made: made})
        told, turn = operator_child.load("x", case)
        assert (told, turn()) == ({"trials": 3}, {"latency_s": value})
    assert np.load(case.file("x.npy")) == [1.0]
    assert Case(**json.loads(json.dumps(asdict(case)))) == case


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("op", [*SMALL_SUITE, *OPEVO])
def test_pytorch_computes_the_same(op: str, channels_last: bool) -> None:
    pytest.importorskip("torch")
    from benchmarks.peers_torch import form

    shape = SMALL_SUITE.get(op, ())
    workload: Workload = FAMILIES[op](op, 2, shape) if shape else OPEVO[op]
    inputs = workload.inputs(np.random.default_rng(0))
    expected = workload.reference(*inputs)
    made = form(op, inputs, channels_last, shape)
    out = made.finish(made.call()).numpy()
    assert out.shape == expected.shape
    assert np.abs(out - expected).max() <= 1e-5 * np.abs(expected).max()


def test_an_operator_without_a_pytorch_form_is_named() -> None:
    pytest.importorskip("torch")
    from benchmarks.peers_torch import form

    with pytest.raises(ArgumentError, match="max_pool2d has no PyTorch form"):
        form("max_pool2d", [], False, ())


def test_what_metaschedule_found_is_kept_by_all_that_decides_it(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    from benchmarks.peers_metaschedule import folder_of

    def folder(**other: Any) -> Path:
        known = {"op": "NRM.0", "batch": 1, "target": "llvm", "threads": 2, **other}
        case = Case(folder="", cache=str(tmp_path), **known)
        return folder_of(case.workload.func, case)

    others = ({"batch": 2}, {"op": "NRM.1"}, {"trials": 8}, {"seed": 1}, {"threads": 1})
    assert folder() == folder(seconds=9.0)
    assert len({folder(), *(folder(**other) for other in others)}) == 6
    assert folder().parent == tmp_path


def test_peers_are_read() -> None:
    assert parse_peers("") == Peers()
    assert parse_peers("torch,metaschedule:8") == Peers(("torch", "metaschedule"), 8)
    assert parse_peers("metaschedule").trials == 128


@pytest.mark.parametrize("text", ["tensorflow", "torch:8", "metaschedule:", "metaschedule:-1"])
def test_wrong_peers_are_named(text: str) -> None:
    with pytest.raises(ArgumentError, match=f"peers='{text}'"):
        parse_peers(text)


def test_channels_last_applies_where_there_are_channels() -> None:
    peers = Peers(("torch",))
    assert systems_for("C2D.0", peers) == ["torch", "torch_channels_last"]
    assert systems_for("OPE.7", peers) == ["torch", "torch_channels_last"]
    assert systems_for("OPE.0", peers) == systems_for("GMM.3", peers) == ["torch"]


@pytest.mark.parametrize("ops", ["C2D.4", "nothing", "matmul:rows=x", "C2D.0,", "matmul:depth"])
def test_wrong_operators_are_named(ops: str) -> None:
    with pytest.raises(ArgumentError, match="ops="):
        operators.chosen_ops(ops, 1)


def test_all_is_the_suite() -> None:
    assert len(operators.chosen_ops("all", 1)) == 64
    assert len(operators.chosen_ops("all,matmul", 16)) == 57
    assert len(operators.chosen_ops("all", 1, "int8")) == 4 * len(PRODUCTS)
