"""Files that this package reads: bounds of what they may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StorageConfig:
    """Saved networks (`ansor.frontend.deploy.storage`).

    Their weights and machine code are not compressed, so that the size of the file bounds them.
    """

    metadata_bytes: int = 64 << 20  # of the description of a network, at most; most have 100 KB
    module_bytes: int = 1 << 30  # of the module as JSON, at most; ResNet-50 has 6 MB


STORAGE = StorageConfig()
