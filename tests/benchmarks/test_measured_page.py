"""The page of measured figures: it is up to date, and its cells are right for made-up results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import measured
from benchmarks.measured import PAGE, RESULTS, SECTIONS, Section, page
from benchmarks.measured_comparisons import networks, operators, peak
from benchmarks.measured_faults import faults
from benchmarks.measured_low_precision import low_networks, low_operators, precision_auto
from benchmarks.measured_policies import search_policies
from benchmarks.measured_results import Entry, MissingKeyError, read_runs
from benchmarks.measured_search import cost_model, policies, throughput
from benchmarks.measured_systems import (
    clusters,
    compiled_networks,
    deployments,
    schedules_by_hand,
)

Document = dict[str, Any]


def document(results: Sequence[Document], mcpu: str = "znver4", **about: Any) -> Document:
    environment = {
        "processor": "AMD EPYC",
        "target": {"kind": "llvm", "mcpu": mcpu},
        "threads": 2,
        "commit": "abc1234",
        "time": "2026-11-28T12:00:00+00:00",
        **about,
    }
    return {"environment": environment, "results": list(results)}


def operator(op: str, system: str, latency_us: float, to_own: float, **more: Any) -> Document:
    row = {"op": op, "system": system, "latency_us": latency_us, "to_own": to_own}
    row |= {"gflops": 50.0, "of_peak": 0.5, "tuning_s": None, "trials": None, "max_rel_err": 1e-6}
    return row | more


def written(folder: Path, *documents: Document) -> list[Entry]:
    """The runs of a file that holds these documents."""
    file = folder / "made_up.json"
    file.write_text(json.dumps({"runs": documents}), encoding="utf-8")
    return read_runs(file)


def lines(text: str) -> list[list[str]]:
    """The cells of all lines of all tables."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def named(text: str, *first: str) -> dict[str, str]:
    """The line that begins with these cells, by column."""
    header: list[str] = []
    rows = lines(text)
    for cells, rule in zip(rows, [*rows[1:], [""]], strict=True):
        if rule[0] == "---":
            header = cells
        if tuple(cells[: len(first)]) == first:
            return dict(zip(header, cells, strict=True))
    raise AssertionError(f"no line {first} in\n{text}")


def test_the_page_is_what_the_script_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_result_file_is_on_the_page() -> None:
    files = [file for section in SECTIONS for file in section.files]
    assert len(files) == len(set(files))
    assert {file.name for file in RESULTS.iterdir()} <= set(files)
    text = page()
    assert all(f"](results/{file.name})" in text for file in RESULTS.iterdir())


def test_a_section_without_files_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, document([{"part": "sampling", "programs_per_s": 1.0}]))
    shown = Section("Shown", "t", "c", ("absent.json", "made_up.json"), "python", throughput)
    hidden = Section("Hidden", "t", "c", ("absent.json",), "python", throughput)
    text = page([shown, hidden], tmp_path)
    assert "## Shown" in text
    assert "Hidden" not in text
    assert "absent.json" not in text


def test_check_fails_for_another_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "PAGE", tmp_path / "measured.md")
    monkeypatch.setattr(measured, "page", lambda: "text\n")
    run = CliRunner().invoke
    assert run(measured.main, ["--check"]).exit_code == 1  # no page at all
    assert run(measured.main, []).exit_code == 0
    assert run(measured.main, ["--check"]).exit_code == 0
    measured.PAGE.write_text("old\n", encoding="utf-8")
    done = run(measured.main, ["--check"])
    assert done.exit_code == 1
    assert "docs/measured.md is outdated" in done.output


def test_networks(tmp_path: Path) -> None:
    def row(system: str, latency_ms: float, **more: Any) -> Document:
        return {"model": "resnet18", "system": system, "latency_ms": latency_ms, **more}

    ours = row("ansor", 10.0, tuning_s=90.0, trials=46, max_rel_err=6e-7)
    peers = [row("onnxruntime", 16.0), row("openvino", 15.0)]
    runs = written(tmp_path, document([ours, *peers], budget={"minutes": 1.5}))
    line = named(networks(runs), "resnet18")
    assert (line["ansor, ms"], line["OpenVINO, ms"], line["Inductor, ms"]) == ("10.0", "15.0", "-")
    assert line["fastest peer / ansor"] == "**1.50**"  # 15 ms over 10 ms
    assert line["fastest peer"] == "OpenVINO"
    assert (line["budget, min"], line["tuning, min"], line["programs"]) == ("1.5", "1.5", "46")

    peers[0]["to_own"], peers[1]["to_own"] = 1.2, 1.4  # the medians within turns count
    runs = written(tmp_path, {**document([ours, *peers], budget={"minutes": 1}), "name": "R"})
    assert named(networks(runs), "R")["fastest peer"] == "ONNX Runtime"


def test_the_default_of_a_peer_is_a_footnote(tmp_path: Path) -> None:
    def row(system: str, latency_ms: float, precision: str) -> Document:
        return {"model": "vgg", "system": system, "latency_ms": latency_ms, "precision": precision}

    rows = [row("ansor", 10.0, "float32"), row("openvino_default", 4.0, "bfloat16")]
    text = networks(written(tmp_path, document(rows, budget={"minutes": 1})))
    assert "OpenVINO's own default precision here is lower: vgg 4.00 ms in bfloat16." in text
    assert named(text, "vgg")["fastest peer"] == "-"
    rows[1]["precision"] = "float32"
    text = networks(written(tmp_path, document(rows, budget={"minutes": 1})))
    assert "default precision" not in text


def test_low_precision_networks(tmp_path: Path) -> None:
    def row(system: str, latency_ms: float, precision: str, **more: Any) -> Document:
        errors = {"squared_error": latency_ms * 1e-6, "cosine": 0.999999}
        known = {"model": "vgg", "system": system, "latency_ms": latency_ms}
        own = {"precision": precision, "to_own": latency_ms / 10.0}
        return {**known, **own, **errors, **more}

    rows = [
        row("ansor", 10.0, "bfloat16", tuning_s=90.0, trials=46),
        row("onnxruntime", 5.0, "float32"),
        row("openvino_bfloat16", 20.0, "bfloat16"),
        row("inductor_bfloat16", 30.0, "bfloat16"),
    ]
    budgets = [{"minutes": 1.5, "precision": precision} for precision in ("bfloat16", "auto")]
    text = low_networks(written(tmp_path, *(document(rows, budget=b) for b in budgets)))
    first, second = text.split("### Networks, precision auto")
    line = named(first, "vgg")
    assert (line["fastest peer"], line["fastest peer / ansor"]) == ("OpenVINO bf16", "**2.00**")
    assert (line["squared error"], line["of that peer"]) == ("1.0e-05", "2.0e-05")
    assert (line["ONNX Runtime, ms"], line["Inductor bf16, ms"]) == ("5.00", "30.0")
    assert named(second, "vgg")["fastest peer"] == "ONNX Runtime"  # it may compute in float32, too


def test_low_precision_operators(tmp_path: Path) -> None:
    def low(dtype: str, system: str, to_own: float, **more: Any) -> Document:
        own = {"dtype": dtype, "instruction": f"for {dtype}", "peak_gflops": 400.0}
        return operator("A", system, 10.0 * to_own, to_own, **own, **more)

    rows = [
        low("bfloat16", "ansor", 1.0, max_rel_err=4e-3, of_peak=0.25),
        low("bfloat16", "torch", 2.0, max_rel_err=4e-3),
        low("int8", "ansor", 1.0, max_rel_err=0.0, of_peak=0.75),
        low("int8", "torch", 3.0, max_rel_err=1e-6),
    ]
    text = low_operators(written(tmp_path, document(rows)))
    first, second = text.split("### Operators in int8")
    assert "peak of `for bfloat16` 400 GOP/s" in first
    assert named(first, "Zen 4", "PyTorch")["peer / ansor, geometric mean"] == "**2.00**"
    assert (named(first, "A")["of peak"], named(first, "A")["PyTorch, µs"]) == ("25%", "20.0")
    assert named(second, "A")["of peak"] == "75%"
    assert named(second, "A")["PyTorch, µs"] == "30.0 (wrong)"  # sums of integers are exact
    assert "**3.00**" in second
    assert "**3.00**" not in first


def test_operators(tmp_path: Path) -> None:
    curve = [[1.0, 30.0], [2.0, 18.0], [4.0, 10.0]]
    rows = [
        operator("A", "ansor", 10.0, 1.0, tuning_s=4.5, best_so_far=curve, variant="winograd4"),
        operator("A", "zero", 12.0, 1.2, tuning_s=0.8),
        operator("A", "torch", 40.0, 4.0),
        operator("A", "torch_channels_last", 20.0, 2.0),
        operator("A", "metaschedule", 18.0, 1.8, tuning_s=100.0, trials=128, max_rel_err=7.0),
        operator("B", "ansor", 10.0, 1.0, tuning_s=1.0),
        operator("B", "torch", 80.0, 8.0),
    ]
    text = operators(written(tmp_path, document(rows, peak_gflops=100.4)))
    assert "**Zen 4** (AMD EPYC), 2 threads, commit abc1234, 2026-11-28, peak 100 GFLOP/s" in text
    torch = named(text, "Zen 4", "PyTorch")
    assert torch["peer / ansor, geometric mean"] == "**4.00**"  # of 2 and 8
    assert (torch["least"], torch["operator with the least"]) == ("2.00", "A")
    reached = named(text, "Zen 4", "MetaSchedule")
    assert reached["best latency of the peer reached"] == "1 of 1"
    assert reached["in share of its tuning time"] == "2.0%"  # 2 s of 100 s
    line = named(text, "A")
    assert (line["PyTorch, µs"], line["PyTorch / ansor"]) == ("20.0", "2.00")
    assert line["MetaSchedule, µs"] == "18.0 (wrong)"
    assert (line["without trials / ansor"], line["without trials, s"]) == ("1.20", "0.8")
    assert (line["algorithm"], line["of peak"], line["error"]) == ("winograd4", "50%", "1.0e-06")
    assert named(text, "B")["MetaSchedule / ansor"] == "-"


def test_peak(tmp_path: Path) -> None:
    rows = [
        operator("A", "ansor", 10.0, 1.0, of_peak=0.96, best_so_far=[[1.04, 30.0], [2.0, 10.0]]),
        operator("A", "zero", 12.0, 1.2, of_peak=0.8),
    ]
    line = named(peak(written(tmp_path, document(rows, seed=3))), "Zen 4", "A")
    assert (line["of peak"], line["without trials, of peak"]) == ("96%", "80%")
    assert line["without other algorithms, of peak"] == "-"
    assert (line["ends of the rounds, s"], line["seed"]) == ("1.0, 2.0", "3")


def test_cost_model(tmp_path: Path) -> None:
    def row(op: str, model: str, spearman: float, best: float = 1.0) -> Document:
        tops = {f"best_of_{count}": best for count in (1, 5, 10)}
        return {"op": op, "model": model, "spearman": spearman, **tops}

    rows = [
        row("A", "draft", 0.9, 1.1),
        row("A", "gbdt, same op", 0.8),
        row("A", "gbdt, other ops", 0.7),
        row("B", "draft", 0.8, 1.3),
        row("B", "gbdt, same op", 0.6),
        row("B", "gbdt, other ops", 0.5),
    ]
    text = cost_model(written(tmp_path, document(rows, seed=61)))
    assert "seed 61" in text
    header, _, a, _, median = lines(text)
    assert header[:3] == ["operator", "draft: Spearman", "best of 1"]
    assert a == ["A", "0.90", "1.10", "1.10", "1.10", "0.80", "0.70"]
    assert median == ["median", "0.85", "1.20", "1.20", "1.20", "0.70", "0.60"]


def test_throughput(tmp_path: Path) -> None:
    first = document([{"part": "sampling", "programs_per_s": 12345.6}])
    second = document([{"part": "evolution", "programs_per_s": 43.21}], "znver5")
    assert lines(throughput(written(tmp_path, first, second))) == [
        ["part", "Zen 5", "Zen 4"],
        ["---", "---:", "---:"],
        ["evolution", "43", "-"],
        ["sampling", "-", "12,300"],
    ]


def test_policies(tmp_path: Path) -> None:
    def row(policy: str, retimed_us: float) -> Document:
        figures = {"final_us": 9.0, "retimed_us": retimed_us, "reached": 1, "searches": 5}
        return {"op": "A", "policy": policy, **figures}

    rows = [row("full", 10.0), row("random", 15.0)]
    text = policies(written(tmp_path, document(rows, after="B", trials=32)))
    line = named(text, "Zen 4", "A after B", "random")
    assert (line["timed again, µs"], line["timed again / full"]) == ("15.0", "1.50")
    assert line["searches within 5 % of the best"] == "1 of 5"


@pytest.mark.parametrize("key", ["commit", "programs_per_s", "results"])
def test_a_missing_key_is_named_with_its_file(tmp_path: Path, key: str) -> None:
    made_up = document([{"part": "sampling", "programs_per_s": 1.0}])
    places = {
        "commit": (made_up["environment"], "runs[0].environment.commit"),
        "programs_per_s": (made_up["results"][0], "runs[0].results[0].programs_per_s"),
        "results": (made_up, "runs[0].results"),
    }
    values, place = places[key]
    del values[key]
    written(tmp_path, made_up)
    section = Section("H", "t", "c", ("made_up.json",), "python", throughput)
    with pytest.raises(MissingKeyError) as raised:
        page([section], tmp_path)
    assert str(raised.value) == f"made_up.json: no key '{place}'"


def test_the_command_reports_a_missing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise MissingKeyError("made_up.json", "environment")

    monkeypatch.setattr(measured, "page", fail)
    done = CliRunner().invoke(measured.main, ["--check"])
    assert done.exit_code == 1
    assert "made_up.json: no key 'environment'" in done.output


def test_a_file_with_one_document_is_one_run(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(document([])), encoding="utf-8")
    (run,) = read_runs(file)
    assert run["environment"]["commit"] == "abc1234"


def test_precision_auto(tmp_path: Path) -> None:
    row = {"model": "bert_base", "precision": "float32", "latency_ms": 12.5, "ratio": 0.4321}
    text = precision_auto(written(tmp_path, document([row], minutes=4.0)))
    line = named(text, "bert_base", "float32")
    assert line["auto / this"] == "0.432"
    assert line["latency, ms"].startswith("12.5")
    assert line["budget, min"] == "4"


def test_faults(tmp_path: Path) -> None:
    rows = [
        {"name": "search", "injected": "f", "required": "r", "observed": "a|b", "seconds": 1.6},
        {"name": "mount", "injected": "f", "required": "r", "observed": "-", "seconds": 0.1},
    ]
    for row, holds in zip(rows, (False, None), strict=True):
        row["holds"] = holds
    made_up = {**document(rows), "scenario": "bad_candidates"}
    text = faults(written(tmp_path, made_up))
    line = named(text, "bad candidates", "search")
    assert (line["observed"], line["holds"], line["s"]) == ("a/b", "**no**", "2")
    assert named(text, "bad candidates", "mount")["holds"] == "not run"


def test_schedules_by_hand(tmp_path: Path) -> None:
    row = {"op": "GMM.2", "system": "template ga", "latency_us": 52.58, "to_sketches": 0.987}
    text = schedules_by_hand(written(tmp_path, document([{**row, "trials": 7, "max_rel_err": 0}])))
    line = named(text, "GMM.2", "template ga")
    assert (line["µs"], line["to sketches"], line["programs"]) == ("52.6", "0.99", "7")


def test_clusters(tmp_path: Path) -> None:
    row = {"part": "simulated", "nodes": 16, "functions": 32, "programs_per_s": 81.2, "busy": 0.5}
    rows = [{**row, "limit": "driver"}, {**row, "nodes": 4, "limit": ""}]
    text = clusters(written(tmp_path, document(rows)))
    assert named(text, "simulated", "16")["limit"] == "driver"
    line = named(text, "simulated", "4")
    assert (line["programs/s"], line["busy"], line["limit"]) == ("81.2", "50%", "-")


def test_deployments(tmp_path: Path) -> None:
    row = {"model": "resnet18", "python_ms": 4.0, "cpp_ms": 3.9, "ratio": 0.975}
    rows = [{**row, "equal": True}, {**row, "model": "other", "equal": False}]
    text = deployments(written(tmp_path, document(rows)))
    assert named(text, "resnet18")["C++ to Python"] == "0.975"
    assert [named(text, x)["results"] for x in ("resnet18", "other")] == ["equal", "**different**"]


def test_compiled_networks(tmp_path: Path) -> None:
    row = {"model": "bert", "system": "inductor", "latency_ms": 9.8765, "to_auto_schedule": 1.25}
    row |= {"compile_s": 30.0, "max_rel_err": 1e-6}
    lonely = {**row, "system": "eager", "to_auto_schedule": None}
    text = compiled_networks(written(tmp_path, document([row, lonely])))
    line = named(text, "bert", "inductor")
    assert (line["ms"], line["to auto_schedule"]) == ("9.877", "1.250")
    assert named(text, "bert", "eager")["to auto_schedule"] == "-"


def overall_row(policy: str, ratio: float, spread: float, near: int | None) -> Document:
    reached = 0.6 if near else 0.2
    figures = {"ratio": ratio, "spread": spread, "reached": reached, "trials_to_near": near}
    return {"policy": policy, "trials": 64, **figures}


def policy_run(*overall: Document, device: str = "local") -> Document:
    figures = {"median_us": 10.0, "lower_us": 9.0, "upper_us": 12.0, "seconds": 30.0}
    row = {"op": "OPE.0", "policy": "ours", "trials": 64, **figures}
    quality = {"op": "OPE.0", "programs": 2000, "failures": 3, "best_of_10": 1.0}
    quality |= {"spearman": 0.95, "spearman_fast": 0.8, "error": 0.05, "error_fast": 0.03}
    made_up = document([row], device=device, seeds=3, plot="p.svg", surrogates=[quality])
    return {**made_up, "overall": list(overall)}


def test_search_policies(tmp_path: Path) -> None:
    rows = [overall_row("ours", 1.0, 0.01, 20), overall_row("opevo", 1.3, 0.05, None)]
    text = search_policies(written(tmp_path, policy_run(*rows, device="surrogate")))
    line = named(text, "opevo")
    assert (line["ratio at 64"], line["spread at 64"], line["near at 64"]) == (
        "1.30",
        "5.0%",
        "20%",
    )
    assert line["near after"] == "-"
    assert named(text, "OPE.0", "ours")["µs at 64"] == "10.0 (9.00–12.0)"
    assert named(text, "OPE.0", "2000")["error"] == "5.0%"
    assert "](p.svg)" in text
    assert "was not tested" in text


@pytest.mark.parametrize(
    ("near", "spread", "trials", "variance"),
    [(30, 0.01, "confirmed", "confirmed"), (None, 0.2, "refuted", "refuted")],
)
def test_the_claim_of_opevo(
    tmp_path: Path, near: int | None, spread: float, trials: str, variance: str
) -> None:
    """Policies that the study does not compare do not count."""
    rows = [
        overall_row("ours", 1.0, 0.001, 10),
        overall_row("opevo", 1.1, spread, near),
        overall_row("ga", 1.2, 0.05, 50),
        overall_row("ga+draft", 1.1, 0.0, 5),
        overall_row("grid", 40.0, 0.0, None),
        overall_row("best of the others", 1.1, 0.0, 5),
    ]
    text = search_policies(written(tmp_path, policy_run(*rows)))
    assert f"fewest trials is **{trials}**" in text
    assert f"lowest variance is **{variance}**" in text
