"""Files of all earlier formats are read, and their networks have the same results."""

from __future__ import annotations

import json
import platform
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.target import Target

import ansor
from ansor.callbacks import Finish
from ansor.errors import UnsupportedError
from ansor.frontend import compile_model, optimize
from ansor.frontend.deploy.saved_notes import known_fields
from ansor.frontend.deploy.storage import VERSION
from ansor.frontend.importers.from_relax import from_relax
from ansor.report.precision_table import PrecisionRow
from ansor.results import TaskResult

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("network_v*.ansor"))
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
TASK = TaskResult("dense", 1, 48, 1e-6, 0, "untuned", 0.0, note="as written")


def network() -> ansor.TunedModel:
    """A product of matrices for any processor of this architecture."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, relax.const(WEIGHT)))
            result = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(result)
    imported = from_relax(builder.get())
    target = Target({"kind": "llvm", "mcpu": "x86-64", "num-cores": 1})
    compiled = compile_model(optimize(imported.mod, target), target, threads=1)
    finish = Finish("no budget", [], 0, 0.0)
    rows = (PrecisionRow("dense", 1, 0, "as given"),)
    return ansor.TunedModel(compiled, (TASK,), finish, 7, calling=imported.calling, precision=rows)


def layout(path: Path) -> tuple[Any, Any]:
    """The structure of a file, and of its notes."""
    with zipfile.ZipFile(path) as archive:
        metadata = _names(json.loads(archive.read("ansor.json")))
        notes = metadata.pop("notes")
        return (archive.namelist(), metadata), notes


def lacks(notes: Any, earlier: Any, place: str = "notes") -> list[str]:
    """Entries of earlier notes that are missing; a reader gives others their defaults."""
    if isinstance(earlier, list):
        pairs = zip(notes, earlier, strict=True)
        return [name for new, old in pairs for name in lacks(new, old, place)]
    if not isinstance(earlier, dict):
        return []
    missing = [f"{place}.{name}" for name in earlier if name not in notes]
    shared = [name for name in earlier if name in notes]
    return missing + [x for n in shared for x in lacks(notes[n], earlier[n], f"{place}.{n}")]


def _names(value: Any) -> Any:
    """The structure of JSON data: names without values, one entry of each list."""
    if isinstance(value, dict):
        return {name: _names(inner) for name, inner in sorted(value.items())}
    return [_names(inner) for inner in value[:1]] if isinstance(value, list) else None


def test_a_loaded_network_has_no_untuned_form(tmp_path: Path) -> None:
    network().save(tmp_path / "network.ansor")
    with pytest.raises(UnsupportedError, match="a loaded model does not carry"):
        _ = ansor.load(tmp_path / "network.ansor").untuned


@pytest.mark.skipif(platform.machine() != "x86_64", reason="files have code for x86-64")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_an_earlier_version_of_the_package(path: Path) -> None:
    loaded = ansor.load(path)
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(loaded(x), np.maximum(x @ WEIGHT, 0))
    np.testing.assert_array_equal(loaded(x=x), loaded(x))
    assert loaded.tasks == (TASK,)
    assert (loaded.seed, loaded.precision[0].reason) == (7, "as given")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="files have code for x86-64")
def test_another_layout_needs_another_version(tmp_path: Path, update_golden: bool) -> None:
    golden, fresh = GOLDEN / f"network_v{VERSION}.ansor", tmp_path / "fresh.ansor"
    network().save(fresh)
    if update_golden and not golden.exists():  # a file stays as it was written
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(fresh.read_bytes())
    (file, notes), (earlier_file, earlier_notes) = layout(fresh), layout(golden)
    assert file == earlier_file
    assert not lacks(notes, earlier_notes)


def test_code_for_another_version_of_tvm_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network().save(tmp_path / "network.ansor")
    monkeypatch.setattr(tvm, "__version__", "0.0.1")
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(ansor.load(tmp_path / "network.ansor")(x), x @ WEIGHT)


def test_fields_of_other_versions() -> None:
    row = {"name": "dense", "calls": 1, "short": 0, "reason": "", "later": [1]}
    assert known_fields(PrecisionRow, row) == PrecisionRow("dense", 1, 0, "")
