"""The environment of a figure, which is written beside it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansor.targets.cpu.detect import read_system
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text

_PACKAGES = (
    "ansor",
    "apache-tvm",
    "apache-tvm-ffi",
    "numpy",
    "xgboost-cpu",
    "torch",
    "onnx",
    "onnxruntime",
    "openvino",
)
_CODE = ("--", ":(top)", ":(top,exclude)docs")  # paths of git: all but the documents
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def environment(threads: int | None = None, **more: Any) -> dict[str, Any]:
    """Machine, versions and time as JSON values, with whatever else a benchmark adds."""
    cores = threads or available_cores()
    target = resolve_target("native")
    machine = read_system(target, cores)
    return {
        "processor": machine.name,
        "target": json.loads(target_text(target, cores)),
        "threads": cores,
        "processors": os.cpu_count(),
        "cache_bytes": list(machine.cache_bytes),
        "governor": _text(_GOVERNOR),
        "load_average": list(os.getloadavg()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions(),
        "commit": commit(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **more,
    }


def versions() -> dict[str, str]:
    """Versions of the packages that matter, of those that are installed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """The commit of a checkout, "+" behind it if files differ; None outside a checkout.

    Files in `docs` do not count: benchmarks write their results there.
    """
    head = _git(folder, "rev-parse", "--short", "HEAD")
    if head is None:
        return None
    return f"{head}+" if _git(folder, "status", "--porcelain", *_CODE) else head


def write(file: str | None, document: dict[str, Any]) -> None:
    """Writes a result as JSON; nothing without a file name."""
    if file is not None:
        Path(file).write_text(f"{json.dumps(document, indent=1)}\n", encoding="utf-8")


def _git(folder: Path, *command: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *command], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
