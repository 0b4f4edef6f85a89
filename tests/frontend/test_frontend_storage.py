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
from ansor.config import STORAGE
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend import (
    CompiledModel,
    StorageError,
    StoredModel,
    load_model,
    random_inputs,
    save_model,
)
from ansor.frontend.deploy.seal import leave_room, seal

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


def archived(path: Path, members: list[tuple[str, bytes]], compression: int = 0) -> Path:
    """A zip of members with a right checksum."""
    with path.open("w+b") as file:
        with zipfile.ZipFile(file, "w", compression) as archive:
            for name, data in members:
                archive.writestr(name, data)
            leave_room(archive)
        seal(file)
    return path


def members_of(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a file whose metadata are others, as if it had been written so."""
    members = dict(members_of(path))
    metadata = json.loads(members["ansor.json"])
    change(metadata)
    changed = {**members, "ansor.json": json.dumps(metadata).encode()}
    return archived(path.with_name("changed.ansor"), list(changed.items()))


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


def test_each_flipped_bit_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    assert load_model(saved).model.entry
    places = {*range(0, len(whole), len(whole) // 60), *range(len(whole) - 100, len(whole))}
    for place in sorted(places):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        saved.write_bytes(data)
        with pytest.raises(StorageError, match=r"network\.ansor"):
            load_model(saved)


def test_what_the_archive_does_not_cover_is_noticed(saved: Path) -> None:
    """Names, times and sizes of members, and bytes between them, have no checksum in a zip."""
    whole = saved.read_bytes()
    times = whole.index(b"PK\3\4") + 10
    for data in (
        whole[:times] + b"\1" + whole[times + 1 :],
        whole + b"\0",
        b"\0" + whole,
        whole[:-1],
    ):
        saved.write_bytes(data)
        with pytest.raises(StorageError, match="damaged"):
            load_model(saved)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ([("../../escaped", b"x")], "a zip of"),
        ([("/absolute", b"x")], "a zip of"),
        ([("ansor.json", b"{}")], "a zip of"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_further_members_are_refused(
    saved: Path, extra: list[tuple[str, bytes]], reason: str
) -> None:
    before = sorted(saved.parent.parent.iterdir())
    with pytest.raises(StorageError, match=reason):
        load_model(archived(saved.with_name("more.ansor"), members_of(saved) + extra))
    assert sorted(saved.parent.parent.iterdir()) == before


@pytest.mark.parametrize("name", ["ansor.json", "weights", "code/library.so"])
def test_what_would_fill_the_memory_is_refused(saved: Path, name: str) -> None:
    """A member of zeros takes a thousandth of its size."""
    size = STORAGE.metadata_bytes + 1
    members = {**dict(members_of(saved)), name: bytes(size)}
    bomb = archived(saved.with_name("bomb"), list(members.items()), zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < size // 10
    with pytest.raises(StorageError, match="too many"):
        load_model(bomb)


def test_a_huge_shape_is_refused_before_memory_is_taken(saved: Path) -> None:
    def enlarge(metadata: dict[str, Any]) -> None:
        metadata["weights"][0][1] = [1 << 40, 1 << 40]

    with pytest.raises(StorageError, match="larger than what was written"):
        load_model(rewritten(saved, enlarge))


def test_failed_save_keeps_the_old_file(saved: Path, compiled: CompiledModel) -> None:
    before = saved.read_bytes()
    with pytest.raises(ArgumentError, match="notes"):
        save_model(StoredModel(compiled.complete, {"bad": object()}), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_unwritable_path(compiled: CompiledModel, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be written"):
        save_model(StoredModel(compiled.complete, {}), tmp_path / "no" / "folder" / "file")
