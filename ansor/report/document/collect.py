"""The report of a file or a folder."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from ansor.database.log import opened_records
from ansor.errors import ArgumentError
from ansor.report.document.document import Document
from ansor.report.document.inputs import read_network
from ansor.report.document.network_document import network_document
from ansor.report.document.record_document import record_document

_NETWORK = ".ansor"


def collect(source: str | os.PathLike[str]) -> Document:
    """Reads a folder of results, a saved network, a database or a log.

    Raises:
        ArgumentError: there is no such file, or the folder has no network.
        StorageError: a file of a network is damaged.
        DatabaseError: a database is damaged, or the file is of another kind.
        MissingPackageError: a package is not installed.
    """
    path = Path(source)
    if not path.exists():
        raise ArgumentError("source", str(path), "no such file; give a folder, network or database")
    if path.is_dir() or path.suffix == _NETWORK or zipfile.is_zipfile(path):
        return network_document(read_network(path))
    with opened_records("source", path) as database:
        return record_document(path.name, database)
