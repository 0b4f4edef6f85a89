"""Limits of the files that this package reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StorageConfig:
    """Saved networks (`ansor.frontend.deploy.storage`).

    Their weights and machine code are not compressed, so that the size of the file bounds them.
    """

    metadata_bytes: int = 64 << 20  # largest description of a network; most have 100 KB
    module_bytes: int = 1 << 30  # largest module as JSON; ResNet-50 has 6 MB


@dataclass(frozen=True)
class DatabaseConfig:
    """Files of records (`ansor.database`)."""

    # A larger file is not checked for damaged pages when it is opened. The check takes 1.1 ms for
    # 1000 records of 2.3 KB each (Zen 5, file in memory), and 3 ms for each of these megabytes from
    # a hard disk.
    checked_bytes: int = 64 << 20


STORAGE = StorageConfig()
DATABASE = DatabaseConfig()
