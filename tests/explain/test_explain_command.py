"""`ansor explain`, `TunedModel.explain`, and the commands of their page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from formula_device import FormulaDevice, seconds

import ansor
from ansor import workloads
from ansor.cli.main import main
from ansor.config import QUICK
from ansor.database.database import Database
from ansor.database.jsonl import export_jsonl
from ansor.errors import ArgumentError, UnsupportedError
from ansor.explain.choice import chosen
from ansor.explain.recorded import explain_record, machine_of
from ansor.measure.result import ErrorKind, Measurement
from ansor.program.program import Program
from ansor.run.prepare import prepare_network
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text
from ansor.task import Task

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
MODEL = "matmul:rows=32,columns=32,depth=32"


class Formula(FormulaDevice):
    """The untuned program never wins."""

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        return [seconds(program) if program.steps else 1.0 for program in programs]


def tensors(rows: int = 32) -> list[Any]:
    return list(workloads.build("matmul", rows=rows, columns=32, depth=32).tensors)


def tune(database: Path) -> ansor.TunedModel:
    settings = {"trials": 6, "device": Formula(), "config": QUICK}
    return ansor.tune(tensors(), database=database, **settings)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with six records of a matmul."""
    path = tmp_path_factory.mktemp("explain") / "records.sqlite"
    tune(path)
    return path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def test_the_command_and_the_tuned_model_explain_the_same_program(tmp_path: Path) -> None:
    file, out = tmp_path / "records.sqlite", tmp_path / "figures.json"
    tuned = tune(file)
    result = invoke(MODEL, str(file), "--json", str(out))
    assert result.exit_code == 0, result.output
    read, own = json.loads(out.read_text(encoding="utf-8")), tuned.explain().to_json()
    assert read == json.loads(json.dumps(own))
    assert own["search"]["trials"] == 6
    assert own["limits"]["compulsory_bytes"] == 3 * 4 * 32**2
    assert result.stdout.strip() == str(tuned.explain())
    assert str(tuned.explain("operator")) == str(tuned.explain())


def test_the_winner_of_the_last_comparison_is_explained(database: Path, tmp_path: Path) -> None:
    """Even if the first record of another program was faster, unless that one is newer."""
    target = resolve_target("native")
    text = target_text(target, available_cores())
    (task, *_) = prepare_network(tensors(), target, text).tasks
    with Database(tmp_path / "copy.sqlite") as copy:
        with Database(database) as source:
            copy.add_records(source.tasks(), source.records(task.key, text))
        first, second, third = (x.program for x in copy.best(task.key, text, 3))
        copy.elect(task.key, task, second)
        assert decisions(copy, task, target) == dict(second.values)
        copy.add(task, third, Measurement((1e-9,)))
        assert decisions(copy, task, target) == dict(third.values)
        assert first != third


def decisions(records: Database, task: Any, target: Any) -> dict[str, Any]:
    return dict(explain_record([task], records, target, available_cores()).decisions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([MODEL, "DATABASE", "operater"], "task='operater': no such task; near names are operator"),
        ([MODEL, "DATABASE", "--target", "graviton3"], "has no record for neoverse-v1, "),
        (["matmul:rows=8,columns=32,depth=32", "DATABASE"], "no record of task 'operator'"),
        (["nonet", "DATABASE"], "model='nonet'"),
        ([MODEL, "EMPTY"], "no records; tune the model with this database"),
        ([MODEL, "DATABASE", "--json", "/nowhere/x.json"], "json='/nowhere/x.json'"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, database: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.sqlite"
    with Database(empty):
        pass
    places = {"DATABASE": str(database), "EMPTY": str(empty)}
    result = invoke(*(places.get(each, each) for each in arguments))
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line


def test_a_task_whose_programs_all_failed_is_refused() -> None:
    target = resolve_target("native")
    text = target_text(target, available_cores())
    tasks = prepare_network(tensors(), target, text).tasks
    with Database() as records:
        failed = Measurement(error=ErrorKind.BUILD, message="no")
        program = ansor.tune(tensors(), trials=0, device=FormulaDevice()).programs
        assert program is not None
        records.add(tasks[0], program.of["operator"][1], failed)
        with pytest.raises(ArgumentError, match=r"database='in memory': all 1 measurements .*more"):
            explain_record(tasks, records, target, available_cores())


def test_records_of_a_known_core_are_explained_on_any_machine() -> None:
    """Its parameters are known, so the draft needs no measurement."""
    target, threads = resolve_target("graviton3"), 4
    (task, *_) = prepare_network(tensors(), target, target_text(target, threads)).tasks
    tuned = ansor.tune(tensors(), "graviton3", trials=0, threads=threads, config=QUICK)
    assert tuned.programs is not None
    with Database() as records:
        records.add(task, tuned.programs.of["operator"][1], Measurement((1e-5,)))
        found = explain_record([task], records, target, threads)
    assert found.drafted is not None
    assert found.machine.startswith("Graviton3")
    assert found.drafted.seconds == tuned.explain().drafted.seconds  # type: ignore[union-attr]


def test_a_log_is_explained_like_a_database(database: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with Database(database) as records:
        assert export_jsonl(records, log) == 6
    assert "Search: 6 programs measured" in invoke(MODEL, str(log)).stdout
    result = invoke("matmul:rows=8,columns=32,depth=32", str(log))
    assert result.stderr.startswith(f"ansor: database={str(log)!r}: no record of task 'operator'")


def test_the_machine_of_another_processor_is_not_known() -> None:
    """Its records can be read, but not its caches."""
    other = resolve_target("llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u74")
    with pytest.raises(UnsupportedError, match=r"^target='sifive-u74, 3 threads'.* machine of its"):
        machine_of(other, 3)


def test_a_loaded_model_has_no_records(tmp_path: Path) -> None:
    tuned = ansor.tune(tensors(), trials=0, device=FormulaDevice())
    assert tuned.explain().search.trials == 0
    tuned.save(tmp_path / "model.ansor")
    with pytest.raises(ArgumentError, match="task=None: a loaded model does not carry"):
        ansor.load(tmp_path / "model.ansor").explain()


def test_tasks_are_chosen_by_names_and_keys() -> None:
    tasks = {"conv": 1, "conv_add": 2, "dense": 3}
    assert chosen(tasks, "conv") == 1
    assert chosen(tasks, "add") == 2
    assert chosen(tasks, "f00", {"dense": "f00d"}) == 3
    with pytest.raises(ArgumentError, match="task='con': several tasks fit; give one of conv, con"):
        chosen(tasks, "con")
    with pytest.raises(ArgumentError, match="task=None: there are several tasks"):
        chosen(tasks, None)
    with pytest.raises(ArgumentError, match="task='dens3': no such task; near names are dense"):
        chosen(tasks, "dens3")


def test_the_example_has_the_tables_of_a_text(database: Path) -> None:
    """All but that of the stages, which a program with one stage lacks."""
    page = PAGE.read_text(encoding="utf-8")
    (example,) = re.findall(r"## Example.*?```text\n(.*?)```", page, re.DOTALL)
    made = headers(invoke(MODEL, str(database)).stdout)
    assert [x for x in headers(example) if x in made] == made
    assert set(headers(example)) - set(made) <= {"stage µs largest part"}


def headers(text: str) -> list[str]:
    lines = text.splitlines()
    return [" ".join(a.split()) for a, b in pairwise(lines) if b[:2] == "--"]
