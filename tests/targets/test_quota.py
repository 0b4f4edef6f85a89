"""CPU quotas of containers, from files as Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.targets.host import threads
from ansor.targets.host.quota import available_bytes, quota_cores


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("250000 100000\n", 2),
        ("50000 100000\n", 1),
    ],
)
def test_version_2(tmp_path: Path, limit: str, cores: int | None) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": limit}
    assert quota_cores(_write(tmp_path, files)) == cores


def test_the_tightest_group_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/system/job\n",
        "sys/fs/cgroup/system/job/cpu.max": "max 100000\n",
        "sys/fs/cgroup/system/cpu.max": "300000 100000\n",
    }
    assert quota_cores(_write(tmp_path, files)) == 3


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
@pytest.mark.parametrize(("quota", "cores"), [("-1", None), ("400000", 4), ("150000", 1)])
def test_version_1(tmp_path: Path, folder: str, quota: str, cores: int | None) -> None:
    files = {
        "proc/self/cgroup": "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/\n",
        f"sys/fs/cgroup/{folder}/cpu.cfs_quota_us": f"{quota}\n",
        f"sys/fs/cgroup/{folder}/cpu.cfs_period_us": "100000\n",
    }
    assert quota_cores(_write(tmp_path, files)) == cores


def test_no_groups_are_no_limit(tmp_path: Path) -> None:
    assert quota_cores(tmp_path) is None


@pytest.mark.parametrize(
    ("file", "limit", "limited"),
    [
        ("memory.max", "max", False),
        ("memory.max", "1000000", True),
        ("memory/memory.limit_in_bytes", "9223372036854771712", False),
        ("memory/memory.limit_in_bytes", "1000000", True),
    ],
)
def test_a_group_limits_the_memory(tmp_path: Path, file: str, limit: str, limited: bool) -> None:
    files = {"proc/self/cgroup": "5:memory:/\n0::/\n", f"sys/fs/cgroup/{file}": f"{limit}\n"}
    found = available_bytes(_write(tmp_path, files))
    assert found == 1_000_000 if limited else found > 1_000_000


def test_a_quota_limits_the_available_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "quota_cores", lambda: 1)
    assert threads.available_cores() == 1
