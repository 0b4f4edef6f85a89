"""Networks for a machine that is not there: tuned by the draft, compiled, saved and exported."""

from __future__ import annotations

import platform
from pathlib import Path

import exported
import numpy as np
import pytest

import ansor
from ansor.callbacks import Callback
from ansor.cli.main import main
from ansor.errors import UnsupportedError
from ansor.frontend.deploy.export.write import RUNTIME_LIBRARIES
from ansor.measure.fake import FakeDevice
from ansor.run.tuned.saved import export_saved
from ansor.targets.cpu.detect import detect
from ansor.targets.cpu.known_cores import KNOWN_CORES, SHORTHANDS
from ansor.targets.target import resolve_target, runs_here

TARGET = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"
ELF_AARCH64 = b"\xb7\x00"  # e_machine of an ELF file

pytestmark = pytest.mark.skipif(platform.machine() == "aarch64", reason="has such a machine")


class Notes(Callback):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_stage(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def notes() -> Notes:
    return Notes()


@pytest.fixture(scope="module")
def tuned(notes: Notes) -> ansor.TunedModel:
    model = exported.many_dtypes()
    return ansor.auto_schedule(model, TARGET, trials=0, threads=4, callbacks=[notes])


class TestTuned:
    def test_what_is_left_out_is_said(self, tuned: ansor.TunedModel, notes: Notes) -> None:
        assert any("this machine cannot run them" in text for text in notes.texts)
        assert {task.difference for task in tuned.tasks} == {None}
        assert {task.latency_s for task in tuned.tasks} == {None}
        assert "network, measured as a whole: - ms" in tuned.report()

    def test_the_draft_schedules_its_functions(self, tuned: ansor.TunedModel) -> None:
        assert all(task.sketch != "untuned" for task in tuned.tasks)

    def test_it_cannot_run(self, tuned: ansor.TunedModel) -> None:
        for call in (lambda: tuned(*exported.inputs()), tuned.benchmark):
            with pytest.raises(
                UnsupportedError, match=r"is compiled for .*neoverse-v1.*save the model"
            ):
                call()

    def test_it_is_saved_and_exported(self, tuned: ansor.TunedModel, tmp_path: Path) -> None:
        tuned.save(tmp_path / "network.ansor")
        with pytest.raises(UnsupportedError, match="for aarch64 processors, this one is"):
            ansor.load(tmp_path / "network.ansor")
        export_saved(tmp_path / "network.ansor", tmp_path / "made")
        for name in ("libnetwork.so", "threads.o"):
            assert (tmp_path / "made" / name).read_bytes()[18:20] == ELF_AARCH64
        assert not list((tmp_path / "made" / "lib").iterdir())
        assert "copy `libtvm_ffi.so` and `lib" in (tmp_path / "made" / "README.md").read_text()
        assert "threads 4\n" in (tmp_path / "made" / "network.txt").read_text()

    def test_given_runtime_libraries_are_copied(
        self, tuned: ansor.TunedModel, tmp_path: Path
    ) -> None:
        for name in RUNTIME_LIBRARIES:
            (tmp_path / name).write_bytes(name.encode())
        tuned.export(tmp_path / "made", runtime=tmp_path)
        for name in RUNTIME_LIBRARIES:
            assert (tmp_path / "made" / "lib" / name).read_bytes() == name.encode()


class TestRefusals:
    def test_a_budget(self) -> None:
        with pytest.raises(UnsupportedError, match=r"aarch64.*trials=0.*leave the budget out"):
            ansor.auto_schedule("resnet18", "graviton3", trials=8)

    def test_another_precision(self) -> None:
        with pytest.raises(UnsupportedError, match="the error cannot be measured here"):
            ansor.auto_schedule("resnet18", "graviton3", trials=0, precision="bfloat16")

    def test_a_core_that_is_not_known(self) -> None:
        target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a53"
        with pytest.raises(UnsupportedError, match="if the parameters of the core are known"):
            ansor.auto_schedule("resnet18", target, trials=0)


class TestKnownCores:
    @pytest.mark.parametrize("name", SHORTHANDS)
    def test_names(self, name: str) -> None:
        target = resolve_target(name)
        core = KNOWN_CORES[target.attrs["mcpu"]]
        assert target.attrs["mtriple"] == "aarch64-linux-gnu"
        assert target.attrs["num-cores"] == core.cores
        assert not runs_here(target)

    @pytest.mark.parametrize("name", KNOWN_CORES)
    def test_parameters(self, name: str) -> None:
        found = detect(resolve_target(name), threads=3)
        assert found.cores == 3
        assert found.name == KNOWN_CORES[name].name
        assert list(found.cache_bytes) == sorted(found.cache_bytes)
        assert found.vector_bytes == 16  # NEON
        level2, last, memory = found.cache_bandwidth
        assert level2 > last > memory > 0

    def test_instructions_for_short_products(self) -> None:
        names = [unit.instruction for unit in detect(resolve_target("graviton3"), 1).dot_units]
        assert names == ["bfdot", "sdot", "udot", "usdot"]
        assert not detect(resolve_target("cortex-a72"), 1).dot_units

    def test_peaks(self) -> None:
        """Four multiply-adds of four floats a cycle: 83 GFLOP/s of a core at 2.6 GHz."""
        assert np.isclose(detect(resolve_target("graviton3"), 1).peak_flops, 2 * 16 * 2.6e9)


def test_a_device_of_the_caller_is_used() -> None:
    device = FakeDevice(lambda task, program: 1e-3)
    model = exported.with_state()
    ansor.auto_schedule(model, TARGET, trials=0, device=device)
    assert device.verified
    assert device.closed


def test_the_commands(tmp_path: Path) -> None:
    words = ["tune", "matmul:rows=32,columns=32", "--target", "cortex-a76", "--threads", "4"]
    main([*words, "--out", str(tmp_path / "out")], standalone_mode=False)
    main(
        ["export", str(tmp_path / "out/model.ansor"), str(tmp_path / "made")], standalone_mode=False
    )
    assert "cortex-a76 (aarch64)" in (tmp_path / "made/README.md").read_text()
