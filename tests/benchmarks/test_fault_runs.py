"""Scenarios of the benchmark of faults that start runs, in small, and what they are built of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fault_scenarios import busy_machine, disk_and_locks, run_killed, shared_database
from benchmarks.fault_scenarios.disks import CannotMountError, empty, fill, read_only, small_disk
from benchmarks.fault_scenarios.processes import left_after, marked, marking
from benchmarks.fault_scenarios.row import Row, Scale
from benchmarks.fault_scenarios.small_run import Files


def failed(rows: list[Row]) -> list[str]:
    return [f"{row.name}: {row.observed}" for row in rows if row.holds is False]


def test_marked_processes_are_found_until_they_end() -> None:
    with marking() as mark:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert [each.pid for each in marked(mark)] == [process.pid]
        assert left_after(mark, 0.1) == 1
    finally:
        process.communicate(b"\n")
    assert left_after(mark, 10.0) == 0
    assert "ANSOR_FAULT_MARK" not in os.environ


def test_disks_are_full_and_read_only_for_everybody() -> None:
    try:
        with small_disk(1 << 20) as disk:
            fill(disk)
            with pytest.raises(OSError, match="No space left"):
                (disk / "file").write_bytes(bytes(1 << 16))
            empty(disk)
            with read_only(disk), pytest.raises(OSError, match="Read-only"):
                (disk / "another").write_bytes(b"1")
            (disk / "file").write_bytes(b"1")
    except CannotMountError as error:
        pytest.skip(str(error))
    assert not disk.exists()


@pytest.mark.slow
def test_a_record_of_the_log_that_the_database_lacks_is_lost(tmp_path: Path) -> None:
    files = Files.of(tmp_path)
    assert (files.lines(), files.lost()) == (0, 0)
    assert disk_and_locks._Attempt(files).run().message == ""
    lines = files.lines()
    assert lines == files.count() > 0
    assert files.lost() == 0
    files.log.write_bytes(files.log.read_bytes() + b'{"torn')
    files.database.unlink()
    assert files.lost() == lines


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [run_killed, disk_and_locks, shared_database])
def test_runs_survive(scenario: object) -> None:
    assert failed(scenario.run(Scale.QUICK)) == []  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_kernel_is_measured_beside_work() -> None:
    """How even the latencies are depends on what else runs here."""
    (row,) = busy_machine.run(Scale.QUICK)
    assert "in 4 of 4 measurements" in row.observed
