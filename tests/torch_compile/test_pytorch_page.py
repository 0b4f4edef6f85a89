"""The code of the page about PyTorch runs, on a device that answers from a formula."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from formula_device import FormulaDevice  # noqa: E402

from ansor.executor import in_turns  # noqa: E402
from ansor.torch_compile.backend import compile_graph  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"
QUICK = (('"minutes": 5', '"trials": 2'), ('"ansor"', "backend"), ("256", "16"))


class Formula(FormulaDevice):
    """Takes the place of the worker processes."""

    share = staticmethod(in_turns)

    def __init__(self, *_: object) -> None:
        super().__init__()


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for long, short in QUICK:
        code = code.replace(long, short)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ansor.run.measuring.LocalDevice", Formula)
    names: dict[str, object] = {"backend": compile_graph}
    exec(compile(code, PAGE.name, "exec", dont_inherit=True), names)
    assert names["scores"].shape == (1, 16)  # type: ignore[attr-defined]
    assert (tmp_path / "records.sqlite").exists()
