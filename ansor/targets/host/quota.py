"""CPU time and memory that a container may use (cgroup v1 and v2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import psutil

_ROOT = Path("/")
# Folders of a controller of v1, below /sys/fs/cgroup.
_V1 = {"cpu": ("cpu,cpuacct", "cpu"), "memory": ("memory",)}


def quota_cores(root: Path = _ROOT) -> int | None:
    """Whole cores that the process may use all the time; None without a limit.

    The tightest limit of the process's group and its parent groups counts, rounded down, but at
    least one. With more threads than the limit, all are stopped for a part of each period.

    Args:
        root: of the file system; another one for tests.
    """
    limits = [limit for group in _groups(root, "cpu") if (limit := _cores(group)) is not None]
    return max(1, int(min(limits))) if limits else None


def available_bytes(root: Path = _ROOT) -> int:
    """Memory that is available without swapping, at most the limit of the process's group.

    Args:
        root: as for `quota_cores`.
    """
    limits = [limit for group in _groups(root, "memory") if (limit := _bytes(group)) is not None]
    return int(min([psutil.virtual_memory().available, *limits]))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of the process's groups with a controller, and of their parent groups.

    In a container, the path may be the host's. Then only its end is mounted, or nothing.
    """
    mounted = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        bases = [mounted] if number == "0" else []
        if controller in controllers.split(","):
            bases = [mounted / name for name in _V1[controller]]
        inner = PurePosixPath(path.lstrip("/"))
        for base in bases:
            yield from (base / part for part in (inner, *inner.parents))


def _cores(group: Path) -> float | None:
    """Cores that a group may use; None without a limit or a group."""
    quota, period = _read(group / "cpu.max").split() or ("max", "1")
    if quota == "max":
        quota = _read(group / "cpu.cfs_quota_us").strip() or "-1"
        period = _read(group / "cpu.cfs_period_us").strip() or "0"
    return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None


def _bytes(group: Path) -> int | None:
    """Memory that a group may use; None without a limit or a group."""
    text = (_read(group / "memory.max") or _read(group / "memory.limit_in_bytes")).strip()
    return int(text) if text.isdecimal() else None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # no group, or no permission to read it: no limit
        return ""
