"""Saving a network and loading it again."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

import ansor
from ansor.errors import ArgumentError, UnsupportedError
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
import ansor
from ansor.frontend import random_inputs
from ansor.frontend.deploy import built
built.compile_module = None  # nothing is to be compiled
model = ansor.load(sys.argv[1])
np.save(sys.argv[2], model(*random_inputs(model.compiled.inputs)))
"""


@pytest.fixture
def saved(compiled: CompiledModel, tmp_path: Path) -> Path:
    path = tmp_path / "network.ansor"
    notes = {"report": [{"task": "a", "latency_ms": 1.5}]}
    save_model(StoredModel(compiled.complete, notes), path)
    return path


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a file whose metadata are others."""
    copy = path.with_name("changed.ansor")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as out:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "ansor.json":
                metadata = json.loads(data)
                change(metadata)
                data = json.dumps(metadata).encode()
            out.writestr(name, data)
    return copy


def test_round_trip(saved: Path, compiled: CompiledModel, target: Target) -> None:
    stored = load_model(saved)
    tvm.ir.assert_structural_equal(stored.model.mod, compiled.mod)
    assert str(stored.model.target) == str(target)
    assert stored.model.inputs == compiled.inputs
    assert stored.notes["report"] == [{"task": "a", "latency_ms": 1.5}]


def test_another_process_computes_the_same_without_compiling(
    saved: Path, compiled: CompiledModel, tmp_path: Path
) -> None:
    result = tmp_path / "result.npy"
    subprocess.run([sys.executable, "-c", LOAD_AND_RUN, saved, result], check=True, timeout=60)
    np.testing.assert_array_equal(np.load(result), compiled(*random_inputs(compiled.inputs)))


def test_what_is_loaded_can_be_saved(saved: Path, compiled: CompiledModel) -> None:
    again = saved.with_name("again.ansor")
    ansor.load(saved).save(again)
    arrays = random_inputs(compiled.inputs)
    np.testing.assert_array_equal(ansor.load(again)(*arrays), compiled(*arrays))


def test_several_files_in_one_process(saved: Path, compiled: CompiledModel) -> None:
    models = [ansor.load(saved) for _ in range(3)]
    arrays = random_inputs(compiled.inputs)
    for model in models:
        np.testing.assert_array_equal(model(*arrays), compiled(*arrays))


def test_it_may_be_compiled_anew(saved: Path, compiled: CompiledModel) -> None:
    arrays = random_inputs(compiled.inputs)
    found = ansor.load(saved, recompile=True)(*arrays)
    np.testing.assert_allclose(found, compiled(*arrays), rtol=1e-4, atol=1e-5)


def test_of_another_version_of_tvm_only_the_loops_are_used(
    saved: Path, compiled: CompiledModel
) -> None:
    other = rewritten(saved, lambda metadata: metadata["versions"].update(tvm="0.0"))
    assert load_model(other).model.code is None
    arrays = random_inputs(compiled.inputs)
    found = ansor.load(other)(*arrays)
    np.testing.assert_allclose(found, compiled(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("foreign_target", "reason"),
    [
        ({"kind": "llvm", "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu"}, "aarch64"),
        ({"kind": "llvm", "mcpu": "x86-64", "mattr": ["+avx512fp16", "+amx-fp16"]}, "amx-fp16"),
    ],
)
def test_for_another_processor(saved: Path, foreign_target: dict[str, Any], reason: str) -> None:
    text = str(Target(foreign_target))
    foreign = rewritten(saved, lambda metadata: metadata.update(target=text))
    with pytest.raises(UnsupportedError, match=f"{reason}.*recompile=True"):
        ansor.load(foreign)
    assert ansor.load(foreign, recompile=True) is not None


def test_state_is_kept(compiled: CompiledModel, tmp_path: Path) -> None:
    state: tuple[Any, ...] = (np.arange(3), np.ones((2, 2), np.float32), np.zeros((), np.int64))
    path = tmp_path / "state.ansor"
    save_model(StoredModel(compiled.complete, {}, state), path)
    for found, expected in zip(load_model(path).state, state, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


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


def test_an_older_version(saved: Path) -> None:
    older = rewritten(saved, lambda metadata: metadata.update(version=1))
    with pytest.raises(StorageError, match=r"version 1.*tune it again"):
        load_model(older)


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


def test_failed_save_keeps_the_old_file(saved: Path, compiled: CompiledModel) -> None:
    before = saved.read_bytes()
    with pytest.raises(ArgumentError, match="notes"):
        save_model(StoredModel(compiled.complete, {"bad": object()}), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_unwritable_path(compiled: CompiledModel, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be written"):
        save_model(StoredModel(compiled.complete, {}), tmp_path / "no" / "folder" / "file")
