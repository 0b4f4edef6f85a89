"""The benchmark of busy machines, up to what it does with figures."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks import busy
from benchmarks.busy import Row, busy_processes, table


def test_busy_processes_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "_SETTLE_S", 0.0)
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        started.append(real(command))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with busy_processes(2):
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)


def test_table() -> None:
    text = table([Row("ansor", 0, 6.0, 1.0), Row("ansor", 2, 15.0, 2.5)])
    assert text.splitlines()[-1].split() == ["ansor", "2", "15.00", "2.50"]
