"""Findings about the folders that runs write to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ansor.config import DOCTOR, DoctorConfig
from ansor.diagnosis.finding import Finding, State
from ansor.targets.cpu.probe.kept import cache_file


def folder_findings(database: Path | None, config: DoctorConfig = DOCTOR) -> Iterator[Finding]:
    """The folders of the database, of temporary files and of the machine's measurements.

    Args:
        database: file of records; None for the current folder.
        config: has the least free space.
    """
    records = Path.cwd() if database is None else database.absolute().parent
    yield folder_finding("database folder", records, config)
    yield folder_finding("temporary folder", Path(tempfile.gettempdir()), config)
    yield folder_finding("cache folder", _existing(cache_file().parent), config)


def folder_finding(name: str, folder: Path, config: DoctorConfig = DOCTOR) -> Finding:
    """Whether a folder can be written to and has space."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        free = shutil.disk_usage(folder).free
    except OSError as error:
        remedy = "make it writable, or choose another folder"
        return Finding(name, f"{folder}: {error.strerror}", State.WRONG, remedy)
    text = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < config.least_disk_bytes:
        remedy = f"free {config.least_disk_bytes / 2**30:.0f} GiB"
        return Finding(name, text, State.WRONG, remedy)
    return Finding(name, text)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one around it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())
