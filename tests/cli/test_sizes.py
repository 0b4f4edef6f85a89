"""Options that fix dynamic dimensions, and the command as a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ansor
from ansor.cli.main import main
from ansor.cli.size_options import read_sizes
from ansor.errors import ArgumentError

FOREIGN = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


def test_sizes_are_read() -> None:
    sizes = read_sizes(["x=1,3,8,8", "a=b=2", "scalar="], ["batch=4", "n= 2"])
    assert sizes.shapes == {"x": (1, 3, 8, 8), "a=b": (2,), "scalar": ()}
    assert sizes.dims == {"batch": 4, "n": 2}


@pytest.mark.parametrize(
    ("shapes", "dims"),
    [
        (["x"], []),
        (["=1"], []),
        (["x=1,b"], []),
        (["x=1", "x=2"], []),
        ([], ["n=-1"]),
        ([], ["n=1,2"]),
        ([], ["n="]),
    ],
)
def test_sizes_that_are_none(shapes: list[str], dims: list[str]) -> None:
    with pytest.raises(ArgumentError, match=r"give|whole"):
        read_sizes(shapes, dims)


@pytest.fixture
def dynamic(tmp_path: Path) -> Path:
    """A relu of a matrix whose first dimension is dynamic."""
    onnx: Any = pytest.importorskip("onnx")
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, 1, ["batch", 5]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    path = tmp_path / "dynamic.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("options", "rows"), [([], 1), (["--dim", "batch=3"], 3), (["--shape", "x=4,5"], 4)]
)
def test_a_dynamic_model(dynamic: Path, options: list[str], rows: int) -> None:
    out = dynamic.parent / "out"
    arguments = ["tune", str(dynamic), "--trials", "2", "--preset", "quick", "--out", str(out)]
    result = CliRunner().invoke(main, [*arguments, *options])
    assert result.exit_code == 0, result.output
    assert f"inputs: x float32[{rows}, 5]" in result.output
    values = np.linspace(-1, 1, rows * 5, dtype=np.float32).reshape(rows, 5)
    found = ansor.load(out / "model.ansor")(values)
    np.testing.assert_array_equal(np.asarray(found).reshape(rows, 5), np.maximum(values, 0))


def test_an_unknown_dimension(dynamic: Path) -> None:
    out = str(dynamic.parent / "out")
    arguments = ["tune", str(dynamic), "--trials", "2", "--out", out, "--dim", "bath=3"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "bath" in result.stderr
    assert "batch" in result.stderr
    assert len(result.stderr.strip().splitlines()[-1]) > 0


def test_a_foreign_target(tmp_path: Path) -> None:
    arguments = ["tune", "conv2d:height=14,width=14", "--target", FOREIGN, "--trials", "4"]
    result = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "aarch64" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_command_is_a_module() -> None:
    command = [sys.executable, "-m", "ansor", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ansor.__version__ in done.stdout
