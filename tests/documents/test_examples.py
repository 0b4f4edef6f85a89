"""The examples run and compute the right results; sizes and budgets are small here."""

from __future__ import annotations

import platform
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formula_device import LocalFormula

import ansor
from ansor.cli.main import main
from ansor.database import Database, statistics
from ansor.models import ResNetConfig, build_model, registry

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
MOST_LINES = 60  # of code: without comments, docstrings and blank lines
Names = Mapping[str, Any]


def check_cnn(names: Names, printed: str, folder: Path) -> None:
    import torch

    image = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        expected = names["model"](image)
    for network in (names["tuned"], ansor.load(folder / "cnn.ansor")):
        torch.testing.assert_close(network(image), expected, rtol=1e-4, atol=1e-4)
    assert names["tuned"].finish.trials == 6
    assert re.findall(r"^(\w+): \d+ µs$", printed, re.MULTILINE) == ["PyTorch", "ansor"]


def check_onnx(names: Names, printed: str, folder: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    x = np.random.default_rng(1).standard_normal((8, 32), np.float32)
    (expected,) = ReferenceEvaluator(str(folder / "perceptron.onnx")).run(None, {"x": x})
    for network in (names["tuned"], names["by_command"]):
        np.testing.assert_allclose(network(x), expected, rtol=1e-4, atol=1e-6)
    with Database(folder / "records.sqlite") as database:
        assert statistics(database).records == 6  # three trials of each run


def check_operator(names: Names, printed: str, folder: Path) -> None:
    a, b, bias = names["arrays"]
    value = a.astype(np.float64) @ b + bias
    inner = np.sqrt(2 / np.pi) * (value + 0.044715 * value**3)
    expected = 0.5 * value * (1 + np.tanh(inner))
    np.testing.assert_allclose(names["of_numpy"], expected, rtol=1e-4, atol=1e-4)
    assert type(names["of_torch"]).__name__ == "Tensor"
    assert 'T.sblock("result")' in printed
    assert 'T.sblock("biased")' not in printed  # the bias is added where it is used
    assert "vfmadd" in printed or platform.machine() != "x86_64"


def check_rule(names: Names, printed: str, folder: Path) -> None:
    (sketch,) = names["with_rule"]
    assert sketch.name not in [other.name for other in names["built_in"]]
    assert names["tuned"].tasks[0].sketch == sketch.name
    assert [step.structure for step in sketch.steps if hasattr(step, "structure")] == ["SSRS"]
    assert "built-in rules: 3 sketches" in printed
    x, y = np.random.default_rng(1).standard_normal((2, 32, 32), np.float32)
    np.testing.assert_allclose(names["tuned"](x, y), x @ y, rtol=1e-4, atol=1e-4)


def check_cpp(names: Names, printed: str, folder: Path) -> None:
    import torch

    from ansor.models.torch_twin import torch_twin

    scores = np.fromfile(folder / "scores.bin", np.float32)
    image = np.fromfile(folder / "image.bin", np.float32).reshape(1, 3, 224, 224)
    assert len(np.unique(scores)) == 10
    np.testing.assert_array_equal(names["tuned"](image).ravel(), scores)
    with torch.no_grad():
        expected = torch_twin("resnet18", build_model("resnet18").params)(torch.from_numpy(image))
    np.testing.assert_allclose(scores, expected.ravel(), rtol=1e-3, atol=1e-4)


def check_database(names: Names, printed: str, folder: Path) -> None:
    for name in ("team", "theirs", "all"):
        with Database(folder / f"{name}.sqlite") as database:
            counted = statistics(database)
        assert (counted.records, counted.tasks, counted.unreadable) == (6, 2, 0)
    with Database(folder / "all.sqlite") as database:
        (target,) = database.targets()
        best = [database.best(entry.key, target)[0] for entry in database.tasks()]
    tuned = names["tuned"]
    assert tuned.finish.trials == 0
    assert tuned.tasks[0].sketch in [record.program.sketch for record in best]
    assert len((folder / "team.jsonl").read_text().splitlines()) == 6


@dataclass(frozen=True)
class Example:
    """A file, its constants in the test, and what must hold after its run.

    Attributes:
        check: takes the names of the file, what it printed, and the folder that it ran in.
        needs: optional packages.
        programs: that must be installed.
        is_costly: whether the normal suite runs it with `CommandsHere` and `LocalFormula`.
    """

    file: str
    constants: Mapping[str, object]
    check: Callable[[Names, str, Path], None]
    needs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    is_costly: bool = False


CNN = {"WIDTH": 8, "SIZE": 16, "TRIALS": 6, "TIMING_S": 0.01}
ONNX = {"FEATURES": 32, "HIDDEN": 16, "TRIALS": 3}
OPERATOR = {"ROWS": 16, "COLUMNS": 64, "DEPTH": 64, "TRIALS": 2}
CASES = [
    Example("pytorch_cnn.py", CNN, check_cnn, needs=("torch",), is_costly=True),
    Example("onnx_model.py", ONNX, check_onnx, needs=("onnx",), is_costly=True),
    Example("fused_operator.py", OPERATOR, check_operator, needs=("torch",)),
    Example("custom_rule.py", {"SIZE": 32, "TRIALS": 2}, check_rule),
    Example("cpp_deployment/deploy.py", {"TRIALS": 0}, check_cpp, ("torch",), ("cmake", "c++")),
    Example("shared_database.py", {"SIZE": 32, "TRIALS": 3}, check_database, is_costly=True),
]


class CommandsHere(subprocess.Popen[bytes]):
    """Runs the commands of this package in this process, one after another."""

    def __init__(self, args: list[str], **options: Any) -> None:
        if args[:3] == [sys.executable, "-m", "ansor"]:
            main(args[3:], standalone_mode=False)
            args = ["true"]
        super().__init__(args, **options)


def with_constants(code: str, constants: Mapping[str, object]) -> str:
    """The code with other values of the constants at its top."""
    for name, value in constants.items():
        code, count = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value!r}  ", code, flags=re.M)
        assert count == 1, name
    return code


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[Example], None]:
    """Runs an example in an empty folder and checks it."""

    def run_and_check(example: Example) -> None:
        for package in example.needs:
            pytest.importorskip(package)
        if not all(map(shutil.which, example.programs)):
            pytest.skip(f"needs {' and '.join(example.programs)}")
        copy = shutil.copytree(EXAMPLES, tmp_path / "examples") / example.file
        copy.write_text(with_constants(copy.read_text(encoding="utf-8"), example.constants))
        monkeypatch.chdir(tmp_path)
        names = runpy.run_path(str(copy))
        example.check(names, capfd.readouterr().out, tmp_path)

    return run_and_check


@pytest.mark.parametrize("example", CASES, ids=lambda example: example.file)
def test_it_runs(
    example: Example, run: Callable[[Example], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ResNetConfig(blocks=(1,), width=8, classes=10, image=224)
    monkeypatch.setattr(registry, "CONFIGS", {"resnet18": small})
    monkeypatch.setenv("CXXFLAGS", "-O0")
    if example.is_costly:
        monkeypatch.setattr("ansor.run.measuring.LocalDevice", LocalFormula)
        monkeypatch.setattr(subprocess, "Popen", CommandsHere)
    run(example)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [example for example in CASES if example.is_costly], ids=lambda one: one.file
)
def test_it_runs_in_processes(example: Example, run: Callable[[Example], None]) -> None:
    run(example)


def test_every_example_is_tested_and_listed() -> None:
    files = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    assert files == {example.file for example in CASES}
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    assert {f"examples/{file}" for file in files} <= set(re.findall(r"\]\(([^)]+)\)", page))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.*")), ids=lambda path: path.name)
def test_it_is_short_and_begins_with_a_comment(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(('"""', "// ", "# "))
    code = re.sub(r'"""(.*?)"""', "", text, flags=re.DOTALL).splitlines()
    code = [line for line in code if line.strip() and not line.lstrip().startswith(("#", "//"))]
    assert len(code) <= MOST_LINES
