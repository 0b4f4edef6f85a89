"""A tuned network in one file: a zip of its machine code, its weights, its scheduled module, and
its notes.

Loading reads code and weights without a conversion. The module serves to compile for another
processor or another version of TVM. The file ends with the SHA-256 of its other bytes, which is
checked before any use of the file.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import tvm
from tvm.target import Target

from ansor.config import STORAGE
from ansor.errors import ArgumentError, UserError
from ansor.frontend.deploy.array_file import index_of, read_arrays, write_arrays
from ansor.frontend.deploy.built import DeployableNetwork
from ansor.frontend.deploy.detached_weights import Array
from ansor.frontend.deploy.machine_code import MachineCode
from ansor.frontend.deploy.seal import SealError, leave_room, seal, sealed
from ansor.frontend.signature import InputSpec

FORMAT = "ansor-network"
VERSION = 3  # of the format; a reader refuses any other one
METADATA, MODULE, WEIGHTS, STATE = "ansor.json", "module.json", "weights", "state"
PROGRAM, LIBRARY = "code/program.vm", "code/library.so"
_SAVED = "give a file that TunedModel.save wrote, or copy it again"
_KNOWN = {METADATA, MODULE, WEIGHTS, STATE, PROGRAM, LIBRARY}
_MOST_BYTES = MappingProxyType({METADATA: STORAGE.metadata_bytes, MODULE: STORAGE.module_bytes})


class StorageError(UserError):
    """A file is no saved network, comes from a later version, or is damaged."""


@dataclass(frozen=True, eq=False)
class StoredModel:
    """The content of a file: a network, the caller's notes (JSON values), and initial values of the
    tensors that the network keeps between calls."""

    model: DeployableNetwork
    notes: Mapping[str, Any]
    state: tuple[Array, ...] = field(default=())


def save_model(stored: StoredModel, path: str | os.PathLike[str]) -> None:
    """Writes the file; replaces a file of this name atomically.

    Raises:
        ArgumentError: the path cannot be written, or the notes are not JSON.
    """
    destination = Path(path)
    metadata = _metadata(stored)
    try:
        _write_atomically(destination, stored, metadata)
    except OSError as error:
        raise ArgumentError(
            "path", str(destination), f"cannot be written; give another path: {error}"
        ) from error


def _metadata(stored: StoredModel) -> str:
    model = stored.model
    known = {
        "format": FORMAT,
        "version": VERSION,
        "versions": {"tvm": tvm.__version__, "numpy": np.__version__},
        "target": str(model.target),
        "entry": model.entry,
        "inputs": [asdict(spec) for spec in model.inputs],
        "code": model.code is not None,
        "weights": index_of(model.weights),
        "state": index_of(_named(stored.state)),
        "notes": dict(stored.notes),
    }
    try:
        return json.dumps(known, indent=1)
    except TypeError as error:
        raise ArgumentError("notes", error.args[0], "give values that JSON can hold") from error


def _named(state: tuple[Array, ...]) -> dict[str, Array]:
    return {str(number): np.asarray(array) for number, array in enumerate(state)}


def _write_atomically(destination: Path, stored: StoredModel, metadata: str) -> None:
    handle, name = tempfile.mkstemp(prefix=destination.name, suffix=".tmp", dir=destination.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            _write(file, stored, metadata)
            seal(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, destination)
    except BaseException:
        os.unlink(name)
        raise


def _write(file: IO[bytes], stored: StoredModel, metadata: str) -> None:
    model = stored.model
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(METADATA, metadata)
        archive.writestr(MODULE, tvm.ir.save_json(model.bare()), zipfile.ZIP_DEFLATED)
        if model.code is not None:
            archive.writestr(PROGRAM, model.code.executable)
            archive.writestr(LIBRARY, model.code.library)
        write_arrays(archive, WEIGHTS, model.weights)
        write_arrays(archive, STATE, _named(stored.state))
        leave_room(archive)


def load_model(path: str | os.PathLike[str]) -> StoredModel:
    """Reads a file that `save_model` wrote; nothing is compiled.

    Raises:
        ArgumentError: no such file.
        StorageError: the file is no saved network, comes from a later version, or is damaged.
    """
    source = Path(path)
    if not source.is_file():
        raise ArgumentError("path", str(source), f"no such file; {_SAVED}")
    try:
        with source.open("rb") as file, zipfile.ZipFile(file) as archive:
            return _read(file, archive)
    except StorageError as error:
        raise StorageError(f"{source}: {error.problem}", error.remedy) from error
    except Exception as error:  # zip, JSON, NumPy and TVM raise errors of many unrelated kinds
        raise StorageError(
            f"{source} is not a saved network, or is damaged: {error}", _SAVED
        ) from error


def _read(file: IO[bytes], archive: zipfile.ZipFile) -> StoredModel:
    members = _members(archive)
    metadata = json.loads(archive.read(members[METADATA]))
    _check_format(metadata)
    data = _checked(file)
    model = DeployableNetwork(
        bare=_module(archive.read(members[MODULE]), metadata["versions"]["tvm"]),
        target=Target(metadata["target"]),
        entry=metadata["entry"],
        inputs=tuple(_input(fields) for fields in metadata["inputs"]),
        weights=read_arrays(data, members[WEIGHTS], metadata["weights"]),
        code=_code(archive, metadata),
    )
    state = read_arrays(data, members[STATE], metadata["state"])
    return StoredModel(model, MappingProxyType(metadata["notes"]), tuple(state.values()))


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name, after a check of their uncompressed sizes.

    Raises:
        StorageError: a member that `save_model` does not write, or a second one of a name.
    """
    members = {info.filename: info for info in archive.infolist()}
    if not members.keys() <= _KNOWN or len(members) < len(archive.infolist()):
        raise StorageError(
            f"not a saved network, but a zip of {', '.join(sorted(members))[:200]}", _SAVED
        )
    for info in members.values():
        is_bounded = info.compress_type == zipfile.ZIP_STORED
        if info.file_size > _MOST_BYTES.get(info.filename, info.compress_size if is_bounded else 0):
            raise StorageError(
                f"its {info.filename} would have {info.file_size} bytes, too many",
                "copy the file again",
            )
    return members


def _checked(file: IO[bytes]) -> memoryview:
    try:
        return sealed(file)
    except SealError as error:
        raise StorageError(f"damaged: {error}", "copy it again, or tune the model again") from error


def _check_format(metadata: Mapping[str, Any]) -> None:
    if metadata.get("format") != FORMAT:
        raise StorageError("not a saved network", _SAVED)
    version = metadata.get("version")
    if version != VERSION:
        is_earlier = isinstance(version, int) and version < VERSION
        remedy = "tune it again" if is_earlier else "install a later version of this package"
        raise StorageError(f"format version {version}, and this package reads {VERSION}", remedy)


def _module(text: bytes, version: str) -> Any:
    """Reads the scheduled module at its first use, which takes most of a second."""

    @cache
    def read() -> tvm.IRModule:
        try:
            return tvm.ir.load_json(text.decode())
        except Exception as error:  # TVM's own, of many kinds
            raise StorageError(
                f"saved with TVM {version}, not readable by {tvm.__version__}",
                "tune the model again",
            ) from error

    return read


def _input(fields: Mapping[str, Any]) -> InputSpec:
    return InputSpec(fields["name"], tuple(fields["shape"]), fields["dtype"])


def _code(archive: zipfile.ZipFile, metadata: Mapping[str, Any]) -> MachineCode | None:
    """The machine code; None if there is none, or if it is for another version of TVM."""
    if not metadata["code"] or metadata["versions"]["tvm"] != tvm.__version__:
        return None
    return MachineCode(archive.read(PROGRAM), archive.read(LIBRARY))
