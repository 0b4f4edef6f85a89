"""The command `ansor` on tiny budgets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import ansor
from ansor.cli.hardware import as_lines
from ansor.cli.main import main
from ansor.targets.cpu.describe import describe
from ansor.targets.cpu.machine import Hardware
from ansor.targets.host.threads import available_cores

MODEL = "matmul:rows=32,columns=32,depth=32"


def invoke(*arguments: str) -> Result:
    """Runs a command."""
    return CliRunner().invoke(main, arguments)


def succeed(*arguments: str) -> str:
    """Runs a command that must succeed; returns its output."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a matmul has been tuned; records are in "db.sqlite"."""
    path = tmp_path_factory.mktemp("cli")
    options = ["--trials", "6", "--preset", "quick", "--out", str(path / "out")]
    succeed("tune", MODEL, *options, "--database", str(path / "db.sqlite"))
    return path


def test_tune_saves_a_network_and_its_report(folder: Path) -> None:
    tuned = ansor.load(folder / "out" / "model.ansor")
    ones = np.ones((32, 32), dtype=np.float32)
    assert np.allclose(tuned(ones, ones), 32)
    report = (folder / "out" / "report.txt").read_text(encoding="utf-8")
    assert "search: 6 programs measured" in report


def test_records_go_to_text_and_back(folder: Path, tmp_path: Path) -> None:
    text, copy = tmp_path / "records.jsonl", tmp_path / "copy.sqlite"
    output = succeed("db", "export", str(folder / "db.sqlite"), str(text))
    count = len(text.read_text(encoding="utf-8").splitlines())
    assert output == f"{count} records exported to {text}\n"
    assert count >= 6
    first = succeed("db", "import", str(copy), str(text))
    again = succeed("db", "import", str(copy), str(text))
    assert first.startswith(f"{count} records added, 0 known")
    assert again.startswith(f"0 records added, {count} known")


def test_databases_are_counted_merged_and_pruned(folder: Path, tmp_path: Path) -> None:
    source, copy = str(folder / "db.sqlite"), str(tmp_path / "copy.sqlite")
    output = succeed("db", "stats", source)
    (records,) = re.findall(r"^records +(\d+)$", output, re.M)
    assert re.search(r"^elections +\d+$", output, re.M)
    assert "best µs" in output
    merged = succeed("db", "merge", copy, source, source)
    assert merged == f"{records} records added, {records} known already, 0 damaged\n"
    counted = succeed("db", "prune", copy, "--best", "1", "--dry-run")
    assert "would be removed" in counted
    assert succeed("db", "prune", copy, "--best", "1") == counted.replace("would be ", "")
    assert invoke("db", "prune", copy).exit_code == 2
    best = succeed("show", "program", MODEL, source)
    assert succeed("show", "program", MODEL, copy) == best


def test_several_models_share_a_run_and_have_folders_of_their_own(tmp_path: Path) -> None:
    other = "matmul:rows=16,columns=16,depth=16"
    options = ["--trials", "4", "--preset", "quick", "--out", str(tmp_path)]
    output = succeed("tune", MODEL, other, *options, "--policy", "opevo+draft")
    assert output.count("search: 4 programs measured") == 2, "the same search"
    for name, size in ((MODEL, 32), (other, 16)):
        tuned = ansor.load(tmp_path / name / "model.ansor")
        ones = np.ones((size, size), dtype=np.float32)
        assert np.allclose(tuned(ones, ones), size)


def test_an_unknown_policy_is_refused_with_the_list() -> None:
    result = invoke("tune", MODEL, "--policy", "annealing")
    assert result.exit_code == 2
    assert "'annealing' is not one of 'evolutionary', 'opevo'" in result.output


def test_tuning_ends_when_the_network_is_fast_enough(tmp_path: Path) -> None:
    options = ["--trials", "64", "--preset", "quick", "--out", str(tmp_path)]
    output = succeed("tune", MODEL, *options, "--until-ms", "1000")
    assert "until: the objective asks for nothing more" in output
    assert "search: 8 programs measured" in output


def test_tuning_without_trials_takes_what_is_known(folder: Path, tmp_path: Path) -> None:
    options = ["--trials", "0", "--out", str(tmp_path)]
    output = succeed("tune", MODEL, *options, "--database", str(folder / "db.sqlite"))
    assert "search: 0 programs measured" in output


def test_a_saved_network_is_exported_to_plain_tvm(folder: Path, tmp_path: Path) -> None:
    output = succeed(
        "export-metaschedule", str(folder / "out" / "model.ansor"), "--out", str(tmp_path)
    )
    assert "network.json, and 1 records beside it" in output
    assert (tmp_path / "database_workload.json").exists()


def test_show_records_and_best(folder: Path) -> None:
    database = str(folder / "db.sqlite")
    assert "6 of 6 records" in succeed("show", "records", database)
    assert "2 of 6 records" in succeed("show", "records", database, "--limit", "2")
    assert "0 of 0 records" in succeed("show", "records", database, "--task", "nothing")
    assert f"{available_cores()} threads" in succeed("show", "best", database)


def test_show_program_prints_the_best_as_loops(folder: Path) -> None:
    output = succeed("show", "program", MODEL, str(folder / "db.sqlite"))
    assert re.search(r"^ *(for|parallel|vectorize|unroll) [ijk]\.\d in \d+:$", output, re.M)
    assert "C <-add- A, B" in output


def test_show_trace_prints_the_best_as_python(folder: Path) -> None:
    output = succeed("show", "trace", MODEL, str(folder / "db.sqlite"))
    assert "sch.get_sblock(" in output
    assert "sch.split(" in output


def test_show_program_without_records_for_this_target(folder: Path) -> None:
    options = ["--target", "llvm -mcpu=x86-64", "--threads", "1"]
    output = succeed("show", "program", MODEL, str(folder / "db.sqlite"), *options)
    assert "no record for this target" in output


def test_show_sketches_prints_holes() -> None:
    output = succeed("show", "sketches", MODEL)
    assert "for i.0 in" in output
    assert "vectorize" in output


def test_show_models_lists_what_is_built_in() -> None:
    output = succeed("show", "models")
    assert re.search("^networks: .*resnet18", output, re.M)
    assert re.search("^operators: .*conv2d", output, re.M)


def test_show_task_lists_or_details() -> None:
    assert "MFLOP" in succeed("show", "task", MODEL)
    assert "ComputeDAG" in succeed("show", "task", MODEL, "operator")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["tune", "nonet"], "model='nonet'"),
        (["tune", "missing.pt2"], "model='missing.pt2'"),
        (["tune", "matmul:rows=many"], "model='matmul:rows=many'"),
        (["tune", "matmul:height=1"], "shape='height'"),
        (["tune", MODEL, MODEL], f"models='{MODEL} {MODEL}'"),
        (["tune", MODEL, "--until-ms", "0"], "seconds=0.0"),
        (["tune", MODEL, "--minutes", "-1"], "minutes=-1.0"),
        (["tune", MODEL, "--trials", "-1"], "trials=-1"),
        (["tune", MODEL, "--trials", "1", "--threads", "9999"], "threads=9999"),
        (["tune", MODEL, "--target", "abacus"], "target='abacus'"),
        (["tune", MODEL, "--database", "/nowhere/db"], "database='/nowhere/db'"),
        (["show", "task", MODEL, "nothing"], "task='nothing'"),
        (["demo", "--model", "nonet"], "model='nonet'"),
        (["demo", "--peers", "nothing"], "peers='nothing'"),
    ],
)
def test_a_mistake_is_one_line_and_status_two(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"ansor: {named}: ")


def test_a_folder_that_cannot_be_written_is_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = invoke("tune", MODEL, "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "out=" in result.stderr


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    result = invoke("show", "records", str(file))
    assert result.exit_code == 2
    assert "give a database or a log of ansor" in result.stderr
    assert file.read_text() == "mine"


def test_an_exported_program_is_tuned(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    exported = torch.export.export(torch.nn.Linear(8, 4), (torch.ones(2, 8),))
    torch.export.save(exported, tmp_path / "linear.pt2")
    succeed("tune", str(tmp_path / "linear.pt2"), "--trials", "0", "--out", str(tmp_path / "out"))
    tuned = ansor.load(tmp_path / "out" / "model.ansor")
    assert tuned(np.ones((2, 8), dtype=np.float32)).shape == (2, 4)


def test_a_damaged_exported_program_is_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "bad.pt2").write_text("nothing")
    result = invoke("tune", str(tmp_path / "bad.pt2"), "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "is no exported program" in result.stderr


def test_hardware_is_described_with_units() -> None:
    text = as_lines(describe(Hardware(name="Some CPU", cores=2)))
    assert "512 bits, 32 registers" in text
    assert "48 KiB / 1024 KiB / 32768 KiB" in text
    assert "operations" not in text
    assert (
        "1.7 operations a cycle at most"
        in describe(Hardware(slots=2, vector_issue=1.652))["vectors"]
    )


def test_help_lists_the_commands() -> None:
    output = succeed("--help")
    assert all(name in output for name in ("tune", "show", "hardware", "demo"))
    assert ansor.__version__ in succeed("--version")
