"""Limits the resources of a worker, so that an endless candidate fails alone."""

from __future__ import annotations

import resource

from ansor.config import WORKERS


def limit_resources(memory_bytes: int | None) -> None:
    """Limits the memory and the files of this process for as long as it lives.

    An allocation or an output beyond a limit fails: Python raises MemoryError or OSError, and
    machine code gets a null pointer. The log of a worker is a file. A crash writes no core file.

    Args:
        memory_bytes: of private memory that can be written to, touched or not; None is no limit.
    """
    limits = {resource.RLIMIT_FSIZE: WORKERS.log_bytes, resource.RLIMIT_CORE: 0}
    if memory_bytes is not None:
        # Not RLIMIT_AS: threads and allocators reserve addresses that they never use. Linux counts
        # private mappings as data since 4.7 (getrlimit(2)).
        limits[resource.RLIMIT_DATA] = memory_bytes
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        within = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (within, hard))
