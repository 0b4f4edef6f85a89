"""Saving a network and loading it again."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm.target import Target

from ansor.errors import ArgumentError
from ansor.frontend import (
    CompiledModel,
    StorageError,
    StoredModel,
    load_model,
    random_inputs,
    save_model,
)

LOAD_AND_RUN = """
import sys
import numpy as np
from ansor.frontend import compile_model, load_model, random_inputs
stored = load_model(sys.argv[1])
model = compile_model(stored.mod, stored.target)
np.save(sys.argv[2], model(*random_inputs(model.inputs)))
"""


@pytest.fixture
def saved(optimized: tvm.IRModule, target: Target, tmp_path: Path) -> Path:
    path = tmp_path / "network.ansor"
    save_model(StoredModel(optimized, target, {"report": [{"task": "a", "latency_ms": 1.5}]}), path)
    return path


def test_round_trip(saved: Path, optimized: tvm.IRModule, target: Target) -> None:
    stored = load_model(saved)
    tvm.ir.assert_structural_equal(stored.mod, optimized)
    assert str(stored.target) == str(target)
    assert stored.notes["report"] == [{"task": "a", "latency_ms": 1.5}]


def test_another_process_computes_the_same(
    saved: Path, compiled: CompiledModel, tmp_path: Path
) -> None:
    result = tmp_path / "result.npy"
    subprocess.run([sys.executable, "-c", LOAD_AND_RUN, saved, result], check=True, timeout=60)
    np.testing.assert_array_equal(np.load(result), compiled(*random_inputs(compiled.inputs)))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no such file"):
        load_model(tmp_path / "nothing")


def test_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_text("hello")
    with pytest.raises(StorageError, match="not a saved network"):
        load_model(path)


def test_foreign_archive(tmp_path: Path) -> None:
    path = tmp_path / "foreign.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ansor.json", json.dumps({"format": "other"}))
    with pytest.raises(StorageError, match="not a saved network"):
        load_model(path)


def test_later_version(tmp_path: Path) -> None:
    path = tmp_path / "later.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ansor.json", json.dumps({"format": "ansor-network", "version": 99}))
    with pytest.raises(StorageError, match="version 99"):
        load_model(path)


@pytest.mark.parametrize("keep", [0.2, 0.6, 0.99])
def test_truncated_file(saved: Path, keep: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(StorageError, match="damaged"):
        load_model(saved)


def test_flipped_byte_is_noticed(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 0xFF
    saved.write_bytes(data)
    with pytest.raises(StorageError, match="damaged"):
        load_model(saved)


def test_failed_save_keeps_the_old_file(
    saved: Path, optimized: tvm.IRModule, target: Target
) -> None:
    before = saved.read_bytes()
    with pytest.raises(ArgumentError, match="notes"):
        save_model(StoredModel(optimized, target, {"bad": object()}), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_unwritable_path(optimized: tvm.IRModule, target: Target, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be written"):
        save_model(StoredModel(optimized, target, {}), tmp_path / "no" / "folder" / "file")
