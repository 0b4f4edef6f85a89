"""Inputs of reports: a saved network with the files beside it, or records."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ansor.errors import ArgumentError
from ansor.frontend.deploy.storage import StorageError, StoredModel, load_model
from ansor.report.document.comparison_data import COMPARISON_FILE, ComparisonData
from ansor.report.document.search_data import SEARCH_FILE, SearchData
from ansor.report.extra import require

MODEL_FILE = "model.ansor"

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """A tuned network and its data for a report.

    Attributes:
        title: the name of the network or of its file.
        stored: the network.
        search: data of its search; None without a file of them.
        comparison: with peers; None without a file of it.
    """

    title: str
    stored: StoredModel
    search: SearchData | None = None
    comparison: ComparisonData | None = None


def read_network(path: Path) -> NetworkInputs:
    """Reads a saved network and the files beside it, or the folder of both.

    Raises:
        ArgumentError: the folder has no network.
        StorageError: a file is damaged.
    """
    folder = path if path.is_dir() else path.parent
    file = path / MODEL_FILE if path.is_dir() else path
    if not file.is_file():
        raise ArgumentError("source", str(path), _remedy(folder))
    is_result = file.name == MODEL_FILE
    search = read_json(folder / SEARCH_FILE, SearchData) if is_result else None
    comparison = read_json(folder / COMPARISON_FILE, ComparisonData) if is_result else None
    named = search.name if search is not None else ""
    title = named or (file.resolve().parent.name if is_result else file.stem)
    return NetworkInputs(title, load_model(file), search, comparison)


def _remedy(folder: Path) -> str:
    """The remedy for a folder without a network."""
    found = sorted(each.parent.name for each in folder.glob(f"*/{MODEL_FILE}"))
    if found:
        return f"has several networks; give one of its folders: {', '.join(found)}"
    return f"has no {MODEL_FILE}; give the folder that `ansor tune` or `ansor demo` wrote"


def write_json(data: Any, path: str | os.PathLike[str]) -> None:
    """Writes a data class.

    Raises:
        ArgumentError: the file cannot be written.
    """
    try:
        Path(path).write_text(f"{json.dumps(asdict(data), allow_nan=False)}\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(
            "path", str(path), f"cannot be written; give another path: {error}"
        ) from error


def read_json(path: Path, kind: type[T]) -> T | None:
    """Reads a data class; None if there is no such file.

    Raises:
        StorageError: the file is damaged.
    """
    if not path.is_file():
        return None
    try:
        found: T = converted(json.loads(path.read_bytes(), parse_constant=_refused), kind)
        return found
    except (OSError, ValueError, RecursionError) as error:
        remedy = "run `ansor tune` or `ansor demo` again, or delete the file"
        raise StorageError(f"{path} is damaged: {error}", remedy) from error


def _refused(name: str) -> None:
    """Refuses a number that JSON does not have."""
    raise ValueError(f"{name} is no number")


def converted(value: Any, kind: Any) -> Any:
    """JSON values as data classes.

    Raises:
        ValueError: the values are of other types.
        MissingPackageError: a package is not installed.
    """
    require("msgspec")
    import msgspec

    return msgspec.convert(value, kind)
