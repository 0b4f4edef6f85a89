"""Findings about machines and installations, good and bad ones."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import ansor
from ansor.cli.main import main
from ansor.config import DoctorConfig
from ansor.diagnosis import doctor as module
from ansor.diagnosis.finding import DoctorReport, Finding, State
from ansor.diagnosis.folders import folder_finding
from ansor.diagnosis.instructions import InstructionSet, set_finding
from ansor.diagnosis.occupation import (
    Load,
    Snapshot,
    load_between,
    load_finding,
    memory_finding,
    observed_load,
)
from ansor.diagnosis.processor import Cores, clock_findings, core_findings, highest_clock_hz
from ansor.diagnosis.speed import Speed, speed_findings
from ansor.diagnosis.tools import program_finding
from ansor.diagnosis.versions import optional_finding, pinned, required_finding

CORES = Cores(physical=4, logical=8, allowed=8, quota=None, threads=4)
SPEED = Speed(present_flops=95e9, best_flops=100e9, limit_flops=110e9, memory_bytes=2e10)
RIGHT, NOTE, WRONG = State.RIGHT, State.NOTE, State.WRONG


def states(findings: Iterable[Finding]) -> dict[str, State]:
    return {finding.name: finding.state for finding in findings}


def test_this_machine_has_a_finding_for_each_subject(tmp_path: Path) -> None:
    report = ansor.doctor(measure=False, database=tmp_path / "db.sqlite")
    names = [finding.name for finding in report.findings]
    assert len(set(names)) == len(names)
    wanted = (
        "Python apache-tvm apache-tvm-ffi xgboost-cpu numpy torch onnxruntime LLVM g++ GPU nvcc"
    )
    assert set(wanted.split()) < set(names)
    assert {"threads", "CPU quota", "affinity", "SMT", "governor", "turbo"} < set(names)
    assert {"other work", "memory", "database folder"} < set(names)
    found = {finding.name: finding for finding in report.findings}
    assert found["Python"].value == ".".join(map(str, sys.version_info[:3]))
    assert str(tmp_path) in found["database folder"].value
    assert {found[name].state for name in ("apache-tvm", "LLVM", "threads")} == {RIGHT}
    assert "peak" not in found


def test_threads_below_one_are_refused() -> None:
    with pytest.raises(ansor.ArgumentError, match="threads=0: must be at least 1"):
        ansor.doctor(threads=0, measure=False)


def test_a_wrong_property_has_a_remedy() -> None:
    with pytest.raises(ValueError, match="needs a remedy"):
        Finding("peak", "low", WRONG)


def test_a_report_as_text_and_as_json() -> None:
    report = DoctorReport((Finding("SMT", "off"), Finding("peak", "low", WRONG, "cool it")))
    lines = ["right  SMT   off", "WRONG  peak  low", "       -> cool it", "", "wrong: peak"]
    assert str(report).splitlines() == lines
    document = json.loads(json.dumps(report.to_json()))
    assert document["right"] is False
    assert document["findings"][1] == {
        "name": "peak",
        "value": "low",
        "state": "wrong",
        "remedy": "cool it",
    }
    assert str(DoctorReport((Finding("SMT", "off"),))).endswith("\n\nall right")


def test_a_package_must_have_the_version_of_the_requirement() -> None:
    given = ["a==1.2", "b>=3", "c == 4", 'd==5; extra == "x"']
    assert pinned(given) == {"a": "1.2", "c": "4"}
    assert required_finding("a", "1.2", "1.2").state is RIGHT
    other = required_finding("a", "1.2", "1.3")
    assert (other.state, other.value) == (WRONG, "1.3")
    assert "pip install 'a==1.2'" in other.remedy
    assert required_finding("a", "1.2", None).state is WRONG
    assert optional_finding("torch", "torch", None).state is NOTE


@pytest.mark.parametrize(
    ("cores", "wrong", "noted"),
    [
        (CORES, set(), set()),
        (replace(CORES, threads=5), {"threads"}, set()),
        (replace(CORES, allowed=2, threads=2), set(), {"affinity"}),
        (replace(CORES, quota=2, threads=2), set(), {"CPU quota"}),
        (replace(CORES, quota=2), {"threads"}, {"CPU quota"}),
    ],
)
def test_cores(cores: Cores, wrong: set[str], noted: set[str]) -> None:
    found = states(core_findings(cores))
    assert {name for name, state in found.items() if state is WRONG} == wrong
    assert {name for name, state in found.items() if state is NOTE} == noted


@pytest.mark.parametrize(
    ("files", "governor", "turbo"),
    [
        ({}, NOTE, NOTE),
        ({"cpu0/cpufreq/scaling_governor": "performance", "cpufreq/boost": "1"}, RIGHT, RIGHT),
        ({"cpu0/cpufreq/scaling_governor": "powersave", "cpufreq/boost": "0"}, WRONG, NOTE),
        (
            {
                "cpu0/cpufreq/scaling_governor": "powersave",
                "cpu0/cpufreq/scaling_driver": "intel_pstate",
                "intel_pstate/no_turbo": "1",
            },
            RIGHT,
            NOTE,
        ),
    ],
)
def test_clocks(files: dict[str, str], governor: State, turbo: State, tmp_path: Path) -> None:
    for name, text in files.items():
        file = tmp_path / "sys/devices/system/cpu" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    assert states(clock_findings(tmp_path)) == {"governor": governor, "turbo": turbo}


def test_the_highest_clock_includes_turbo(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True)
    (folder / "cpuinfo_max_freq").write_text("4500000\n")
    assert highest_clock_hz(tmp_path) == 4.5e9


@pytest.mark.parametrize(
    ("here", "used", "state"),
    [(["a"], ["a"], RIGHT), (["a"], [], WRONG), ([], [], NOTE), (["b"], ["b", "a"], RIGHT)],
)
def test_instruction_sets(here: list[str], used: list[str], state: State) -> None:
    assert set_finding(InstructionSet("A", ("a", "b"), "sums"), here, used).state is state


@pytest.mark.parametrize(
    ("speed", "wrong"),
    [
        (SPEED, set()),
        (replace(SPEED, limit_flops=None), set()),
        (replace(SPEED, limit_flops=300e9), {"peak"}),
        (replace(SPEED, present_flops=60e9), {"beside its best"}),
        (replace(SPEED, present_flops=None), {"peak"}),
    ],
)
def test_the_measured_peak(speed: Speed, wrong: set[str]) -> None:
    findings = list(speed_findings(speed))
    assert {finding.name for finding in findings if finding.state is WRONG} == wrong


def test_the_peak_is_told_beside_its_limit() -> None:
    peak, best, memory = speed_findings(SPEED)
    assert peak.value == "95 GFLOP/s in float32, 86% of 110 at the clock that the system tells"
    assert best.value == "95% of 100 GFLOP/s"
    assert memory.value == "20.0 GB/s"


def test_other_work_is_wrong_where_programs_leave_no_core_to_it() -> None:
    load = Load(1.0, ("make",))
    found = load_finding(load, CORES)
    assert (found.state, found.value) == (WRONG, "1.0 cores: make")
    assert load_finding(load, replace(CORES, threads=3)).state is RIGHT
    assert load_finding(Load(0.1), CORES).state is RIGHT


def test_the_work_of_others_is_what_the_machine_did_beside_this_process() -> None:
    before = Snapshot(10.0, 100.0, {1: 5.0, 2: 50.0, 3: 7.0})
    after = Snapshot(12.0, 103.0, {1: 6.0, 2: 50.01, 3: 8.0, 4: 0.5})
    names = {1: "own", 2: "idle", 3: "make", 4: "cc"}
    assert load_between(before, after, 1, names.__getitem__) == Load(1.0, ("make", "cc"))
    assert load_between(before, after, 1, lambda pid: "").names == ()


def test_the_load_of_this_machine_is_a_number_of_cores() -> None:
    assert 0 <= observed_load(0.05).cores < math.inf


def test_memory_and_disk_have_a_least_size(tmp_path: Path) -> None:
    assert memory_finding(8 << 30).state is RIGHT
    assert memory_finding(1 << 30).state is WRONG
    assert folder_finding("records", tmp_path).state is RIGHT
    full = folder_finding("records", tmp_path, DoctorConfig(least_disk_bytes=1 << 60))
    assert full.state is WRONG


def test_a_folder_that_cannot_be_written_is_wrong(tmp_path: Path) -> None:
    found = folder_finding("records", tmp_path / "absent")
    assert (found.state, found.value) == (WRONG, f"{tmp_path / 'absent'}: {os.strerror(2)}")


def test_a_program_that_fails_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program_finding("tool", "for tests").state is NOTE
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    assert program_finding("tool", "for tests").state is WRONG
    tool.write_text("#!/bin/sh\necho tool 1.0\n")
    assert program_finding("tool", "for tests") == Finding("tool", "tool 1.0")


def pretended(*findings: Finding) -> Callable[..., DoctorReport]:
    return lambda **given: DoctorReport(findings)


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (Finding("SMT", "off"), 0),
        (Finding("turbo", "off", NOTE), 0),
        (Finding("peak", "low", WRONG, "cool it"), 1),
    ],
)
def test_the_exit_status_is_one_if_something_is_wrong(
    finding: Finding, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "doctor", pretended(finding))
    file = tmp_path / "report.json"
    result = CliRunner().invoke(main, ["doctor", "--json", str(file)])
    assert result.exit_code == status
    assert finding.name in result.output
    assert json.loads(file.read_text())["right"] is (status == 0)


def test_a_report_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "doctor", pretended(Finding("SMT", "off")))
    result = CliRunner().invoke(main, ["doctor", "--json", str(tmp_path / "absent" / "file")])
    assert result.exit_code == 2
    assert "json=" in result.stderr
