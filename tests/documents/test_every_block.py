"""Every code block of every page runs; blocks that cannot have a reason in `treatments.py`."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from block_runner import commands, run_block
from formula_device import LocalFormula
from markdown_page import PAGES, ROOT, Block, blocks
from treatments import TREATMENTS, Treatment

from ansor.models import ResNetConfig, registry
from ansor.targets import registry as targets

TEXT = ("text", "c")  # not run here; tests/frontend/test_exported_network.py compiles the C header
WITH_CODE = [page for page in PAGES if any(b.language not in TEXT for b in blocks(page))]
SMALL_NETWORK = ResNetConfig(blocks=(1,), width=8, classes=10, image=32)


SLOW = {page for page, treatment in TREATMENTS.items() if treatment.slow}
EACH = [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in WITH_CODE]


def small(block: Block, treatment: Treatment) -> Block:
    code = block.code
    for pattern, replacement in treatment.small:
        code = re.sub(pattern, replacement, code)
    return replace(block, code=code)


def is_left_out(block: Block, treatment: Treatment) -> bool:
    return any(block.code.startswith(beginning) for beginning in treatment.left_out)


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")  # of PyTorch's own LSTM
@pytest.mark.parametrize("page", EACH)
def test_the_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    treatment = TREATMENTS.get(page, Treatment())
    networks = {"resnet18": SMALL_NETWORK, "resnet50": SMALL_NETWORK}
    monkeypatch.setattr(registry, "CONFIGS", networks)
    monkeypatch.setattr(targets, "_BACKENDS", dict(targets._BACKENDS))
    monkeypatch.setattr("ansor.run.measuring.LocalDevice", LocalFormula)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType(re.sub(r"\W", "_", page))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__dict__.update(treatment.given(tmp_path))
    for block in blocks(page):
        if block.language not in TEXT and not is_left_out(block, treatment):
            run_block(small(block, treatment), tmp_path, module)
    treatment.check(module.__dict__)


@pytest.mark.parametrize("page", TREATMENTS)
def test_every_entry_is_needed(page: str) -> None:
    treatment, found = TREATMENTS[page], [b for b in blocks(page) if b.language not in TEXT]
    for beginning, reason in treatment.left_out.items():
        assert reason
        assert all((ROOT / path).exists() for path in re.findall(r"tests/[\w/.]+", reason))
        assert sum(block.code.startswith(beginning) for block in found) == 1
    for pattern, _ in treatment.small:
        assert any(re.search(pattern, block.code) for block in found), pattern


def test_commands_are_split() -> None:
    code = "cmake -S a -B b && cmake --build b  # both\nansor tune \\\n  x\n"
    assert commands(code) == [
        ["cmake", "-S", "a", "-B", "b"],
        ["cmake", "--build", "b"],
        ["ansor", "tune", "x"],
    ]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "assert False"),
        ("python", "1 / 1  # ZeroDivisionError: division"),
        ("python", "1 / 0  # ZeroDivisionError: another text"),
        ("python", "1 / 0  # OSError: division"),
        ("sh", "ansor tune nothing-of-this-name --trials 1"),
        ("sh", "make nothing-of-this-name"),
        ("sh", "python -m benchmarks.network --nothing-of-this-name"),
        ("sh", "a-program-that-is-unknown"),
        ("", "x = 1"),
    ],
)
def test_a_wrong_block_fails(language: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_block(Block(language, code, 1), tmp_path, ModuleType("wrong"))


def test_an_announced_exception_is_expected(tmp_path: Path) -> None:
    code = "1 / 0  # ArithmeticError: division"
    run_block(Block("python", code, 1), tmp_path, ModuleType("right"))


def test_pages_are_found() -> None:
    assert {"README.md", "docs/templates.md", "docs/extending/rule.md"} <= set(WITH_CODE)
    assert all((ROOT / page).exists() for page in PAGES)
