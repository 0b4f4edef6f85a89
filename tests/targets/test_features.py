"""Instruction sets come from the operating system's flags where LLVM's model lacks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansor.targets.cpu import features
from ansor.targets.cpu.features import (
    features_here,
    needed_features,
    unnamed_features,
    why_no_tiles_here,
)
from ansor.targets.target import resolve_target

FLAGS = "flags\t\t: fpu pni sse4_1 avx avx2 avx512f avx512_bf16 avx512_fp16 amx_tile amx_int8 abm"
Describe = Callable[[str, dict[str, bool]], None]


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Describe:
    """Stands in for a processor: its flags, and the instruction sets that LLVM finds."""

    def describe(flags: str, found: dict[str, bool]) -> None:
        file = tmp_path / "cpuinfo"
        file.write_text(f"processor\t: 0\n{flags}\nprocessor\t: 1\n")
        monkeypatch.setattr(features, "CPUINFO", file)
        monkeypatch.setattr(features, "_llvm_finds", lambda: found)
        monkeypatch.setattr(features, "why_no_tiles", lambda: None)

    return describe


def test_flags_of_the_system_add_to_what_llvm_finds(processor: Describe) -> None:
    known = ("avx", "avx512bf16", "avx512fp16", "amx-tile", "amx-int8", "amx-bf16", "fma", "lzcnt")
    processor(FLAGS, {**dict.fromkeys(known, False), "sse4.1": False, "sse3": False, "fma": True})
    assert features_here() == {
        *("avx", "avx512bf16", "avx512fp16", "amx-tile", "amx-int8"),
        *("fma", "lzcnt", "sse3", "sse4.1"),
    }


def test_a_system_may_refuse_tiles(processor: Describe, monkeypatch: pytest.MonkeyPatch) -> None:
    processor(FLAGS, dict.fromkeys(("avx", "amx-tile", "amx-int8"), False))
    monkeypatch.setattr(features, "why_no_tiles", lambda: "refused")
    assert features_here() == {"avx"}
    assert why_no_tiles_here() == "refused"
    processor("flags : avx", {"avx": True})
    assert why_no_tiles_here() is None


def test_a_processor_with_more_than_its_name_says(processor: Describe) -> None:
    rocketlake = needed_features(resolve_target("llvm -mcpu=rocketlake"))
    known = dict.fromkeys([*rocketlake, "avx512bf16", "avx512fp16", "amx-tile", "amx-int8"], False)
    processor(FLAGS, {name: name in rocketlake for name in known})
    further = unnamed_features("rocketlake")
    assert further == ("+amx-int8", "+amx-tile", "+avx512bf16", "+avx512fp16")
    made = resolve_target(f"llvm -mcpu=rocketlake -mattr={','.join(further)}")
    assert {"amx-int8", "amx-tile", "avx512bf16", "avx512fp16"} <= set(needed_features(made))


def test_a_processor_with_less_than_its_name_says(processor: Describe) -> None:
    here = set(needed_features(resolve_target("llvm -mcpu=haswell")))
    processor("", dict.fromkeys(here, True) | {"avx512f": False})
    found = unnamed_features("skylake-avx512")
    assert {name for name in found if name.startswith("+")} == set()
    made = resolve_target(f"llvm -mcpu=skylake-avx512 -mattr={','.join(found)}")
    assert set(needed_features(made)) <= here


def test_this_processor_can_run_code_for_itself() -> None:
    assert set(needed_features(resolve_target("native"))) <= features_here()
