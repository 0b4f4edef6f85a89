"""The README's code runs; networks are small and budgets tiny here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansor.models import ResNetConfig, registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
QUICK = (
    ("minutes=5", "trials=2"),
    ("minutes=10", "trials=2"),
    ("trials=32", "trials=2"),
    ("(256", "(32"),
    (" 256)", " 32)"),
)


@pytest.mark.parametrize("block", BLOCKS)
def test_code_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ResNetConfig(blocks=(1,), width=8, classes=10, image=224)
    monkeypatch.setattr(registry, "CONFIGS", {"resnet18": small, "resnet50": small})
    monkeypatch.chdir(tmp_path)
    for long, short in QUICK:
        block = block.replace(long, short)
    exec(compile(block, "README.md", "exec"), {})


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, flags=re.MULTILINE))
def test_make_targets_exist(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
