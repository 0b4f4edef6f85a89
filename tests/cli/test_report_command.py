"""`ansor report` on the results of tiny runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from reports import COMPARISON

import ansor
from ansor.cli import report as command
from ansor.cli.main import main
from ansor.database.database import Database
from ansor.report.document.collect import collect
from ansor.report.document.comparison_data import COMPARISON_FILE
from ansor.report.document.inputs import write_json
from ansor.report.document.search_data import SEARCH_FILE
from ansor.results import Benchmark
from ansor.workloads import build

MODEL = "matmul:rows=32,columns=32,depth=32"


def invoke(*arguments: str) -> Result:
    """Runs a command."""
    return CliRunner().invoke(main, arguments)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tuned matmul in "out", and its records in "db.sqlite"."""
    path = tmp_path_factory.mktemp("report")
    options = ["--trials", "6", "--preset", "quick", "--out", str(path / "out")]
    result = invoke("tune", MODEL, *options, "--database", str(path / "db.sqlite"))
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    """A copy of the folder that may be changed."""
    return Path(shutil.copytree(results / "out", tmp_path / "out"))


def test_a_folder_has_everything_but_a_comparison(results: Path) -> None:
    document = collect(results / "out")
    assert document.title == MODEL
    assert list(document.absent) == ["comparison"]
    (row,) = document.functions
    assert row.flops == 2 * 32**3
    assert row.moved_bytes == 3 * 4 * 32**2
    assert row.trials == document.trials == 6
    assert row.peak_share is not None
    best = document.function_curves[row.name][-1]
    with Database(results / "db.sqlite") as database:
        (entry,) = database.tasks()
        (target,) = database.targets()
        (record,) = database.best(entry.key, target)
    assert best.best_s == record.latency_s
    assert len(document.predictions) + sum(f.count for f in document.failures) == 6
    (program,) = document.programs
    assert "C <-add- A, B" in program.loops
    assert program.language == "pseudo code"
    assert program.assembly
    assert document.environment["version of ansor"] == ansor.__version__


def test_a_tuned_network_writes_its_report_without_a_folder(tmp_path: Path) -> None:
    product = ansor.tune(list(build("matmul", rows=32, columns=32, depth=32).tensors), trials=2)
    benchmark = Benchmark(1e-6, None)
    path = product.write_report(tmp_path / "report.json", name="product", benchmark=benchmark)
    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["title"] == "product"
    assert report["trials"] == 2
    assert report["latency_s"] == 1e-6
    assert [program["language"] for program in report["programs"]] == ["pseudo code"]
    assert list(report["absent"]) == ["comparison"]
    (row,) = report["functions"]
    assert f">{row['name']}<" in product._repr_html_()
    with pytest.raises(ansor.ArgumentError, match="give one of html, markdown, json"):
        product.write_report(tmp_path / "report", format="pdf")


def test_a_network_alone_has_its_functions_and_loops(folder: Path) -> None:
    moved = shutil.move(folder / "model.ansor", folder / "matmul.ansor")
    document = collect(moved)
    assert document.title == "matmul"
    assert {"machine", "predictions", "network_curve", "comparison"} <= document.absent.keys()
    (program,) = document.programs
    assert program.language == "TensorIR"
    assert "T.prim_func" in program.loops
    assert document.machine is None


def test_records_have_tasks_and_curves(results: Path, tmp_path: Path) -> None:
    log = tmp_path / "records.jsonl"
    assert invoke("db", "export", str(results / "db.sqlite"), str(log)).exit_code == 0
    database, text = collect(results / "db.sqlite"), collect(log)
    assert database.functions == text.functions
    assert database.function_curves == text.function_curves
    assert database.trials == 6
    assert "programs" in database.absent


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_the_suffix_chooses_the_format(folder: Path, tmp_path: Path, suffix: str) -> None:
    write_json(COMPARISON, folder / COMPARISON_FILE)
    out = tmp_path / f"report{suffix}"
    result = invoke("report", str(folder), "--out", str(out))
    assert result.output == f"report: {out}\n"
    begin = {".html": "<!DOCTYPE html>", ".md": "# matmul", ".json": "{"}[suffix]
    text = out.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert "openvino" in text, "the comparison"


def test_a_new_network_replaces_the_comparison_of_an_earlier_one(tmp_path: Path) -> None:
    write_json(COMPARISON, tmp_path / COMPARISON_FILE)
    result = invoke("tune", MODEL, "--trials", "0", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert not (tmp_path / COMPARISON_FILE).exists()
    assert collect(tmp_path).trials == 0


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[]",
        "{",
        '{"machine": 5}',
        '{"trials": [[1]]}',
        '{"threads": NaN}',
        "\x00",
        "[" * 100_000,
    ],
    ids=["empty", "list", "torn", "machine", "trials", "NaN", "binary", "deep"],
)
@pytest.mark.parametrize("name", [SEARCH_FILE, COMPARISON_FILE, "model.ansor"])
def test_damaged_files_are_named(folder: Path, name: str, damage: str) -> None:
    (folder / name).write_text(damage, encoding="utf-8")
    result = invoke("report", str(folder), "--out", str(folder / "report.json"))
    assert result.exit_code == 2
    assert result.stderr.startswith("ansor: ")
    assert name in result.stderr
    assert not (folder / "report.json").exists()


def test_trials_of_unknown_tasks_are_refused(folder: Path) -> None:
    data = json.loads((folder / SEARCH_FILE).read_text(encoding="utf-8"))
    data["functions"] = {}
    (folder / SEARCH_FILE).write_text(json.dumps(data), encoding="utf-8")
    result = invoke("report", str(folder))
    assert result.exit_code == 2
    assert "trials of unknown tasks" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "report.txt"], "end it with one of .html"),
        (["--out", "no/such/report.json"], "cannot be written"),
    ],
)
def test_wrong_arguments_name_the_remedy(
    folder: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = invoke("report", str(folder), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_of_several_networks_names_them(folder: Path) -> None:
    result = invoke("report", str(folder.parent))
    assert result.exit_code == 2
    assert "give one of its folders: out" in result.stderr


def test_a_missing_package_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.report.extra.find_spec", lambda name: None)
    result = invoke("report", str(folder))
    assert result.exit_code == 2
    assert "pip install 'ansor[report]'" in result.stderr


@pytest.mark.parametrize(
    ("opens", "terminal", "display", "expected"),
    [
        (None, True, ":0", True),
        (None, True, "", False),
        (None, False, ":0", False),
        (True, False, "", True),
        (False, True, ":0", False),
    ],
)
def test_the_browser_opens_where_a_person_sees_it(
    opens: bool | None,
    terminal: bool,
    display: str,
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses: list[Any] = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("webbrowser.open", addresses.append)
    command.show_report(tmp_path / "report.html", opens)
    assert addresses == ([(tmp_path / "report.html").as_uri()] if expected else [])
