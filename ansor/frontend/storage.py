"""A tuned network in one file: a zip of its scheduled module, its weights and what is known of it.

Machine code is not stored: loading compiles again, in memory, with no linker.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import tvm
from tvm.target import Target

from ansor.errors import AnsorError, ArgumentError
from ansor.frontend.weights import Array, bind_weights, detach_weights

FORMAT = "ansor-network"
VERSION = 1
METADATA, MODULE, WEIGHTS = "ansor.json", "module.json", "weights/"


class StorageError(AnsorError):
    """A file is no saved network, comes from a later version, or is damaged."""


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What a file holds: the scheduled module, its target, and the caller's notes (JSON values)."""

    mod: tvm.IRModule
    target: Target
    notes: Mapping[str, Any]


def save_model(stored: StoredModel, path: str | os.PathLike[str]) -> None:
    """Writes the file; a file of this name is replaced at once or not at all.

    Raises:
        ArgumentError: the path cannot be written, or the notes are not JSON.
    """
    destination = Path(path)
    metadata = _metadata(stored)
    try:
        _write_atomically(destination, stored.mod, metadata)
    except OSError as error:
        raise ArgumentError("path", str(destination), f"cannot be written: {error}") from error


def _metadata(stored: StoredModel) -> str:
    versions = {"tvm": tvm.__version__, "numpy": np.__version__}
    known = {"format": FORMAT, "version": VERSION, "target": str(stored.target)}
    try:
        return json.dumps({**known, "versions": versions, "notes": dict(stored.notes)}, indent=1)
    except TypeError as error:
        raise ArgumentError("notes", error.args[0], "give values that JSON can hold") from error


def _write_atomically(destination: Path, mod: tvm.IRModule, metadata: str) -> None:
    handle, name = tempfile.mkstemp(prefix=destination.name, suffix=".tmp", dir=destination.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, mod, metadata)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, destination)
    except BaseException:
        os.unlink(name)
        raise


def _write(file: io.BufferedWriter, mod: tvm.IRModule, metadata: str) -> None:
    bare, weights = detach_weights(mod)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(METADATA, metadata)
        archive.writestr(MODULE, tvm.ir.save_json(bare), zipfile.ZIP_DEFLATED)
        for name, array in weights.items():
            with archive.open(f"{WEIGHTS}{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load_model(path: str | os.PathLike[str]) -> StoredModel:
    """Reads a file that `save_model` wrote; nothing is compiled yet.

    Raises:
        ArgumentError: no such file.
        StorageError: not a network of ours, of a later version, or damaged.
    """
    source = Path(path)
    if not source.is_file():
        raise ArgumentError("path", str(source), "no such file")
    try:
        with zipfile.ZipFile(source) as archive:
            return _read(archive)
    except StorageError as error:
        raise StorageError(f"{source}: {error}") from error
    except Exception as error:  # zip, JSON, NumPy and TVM raise errors of many unrelated kinds
        raise StorageError(f"{source} is not a saved network, or is damaged: {error}") from error


def _read(archive: zipfile.ZipFile) -> StoredModel:
    metadata = json.loads(archive.read(METADATA))
    _check_format(metadata)
    bare = tvm.ir.load_json(archive.read(MODULE).decode())
    mod = bind_weights(bare, _read_weights(archive))
    return StoredModel(mod, Target(metadata["target"]), MappingProxyType(metadata["notes"]))


def _check_format(metadata: Mapping[str, Any]) -> None:
    if metadata.get("format") != FORMAT:
        raise StorageError("not a saved network")
    if metadata.get("version") != VERSION:
        raise StorageError(f"format version {metadata.get('version')}; this one reads {VERSION}")


def _read_weights(archive: zipfile.ZipFile) -> dict[str, Array]:
    members = [name for name in archive.namelist() if name.startswith(WEIGHTS)]
    return {
        name.removeprefix(WEIGHTS).removesuffix(".npy"): _read_array(archive, name)
        for name in members
    }


def _read_array(archive: zipfile.ZipFile, name: str) -> Array:
    data = io.BytesIO(archive.read(name))
    return np.lib.format.read_array(data, allow_pickle=False)
