"""The code of the page about templates runs, with tiny sizes and budgets."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "templates.md"
QUICK = (("trials=64", "trials=3"), ("256", "32"))


def test_the_code_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    code = "\n".join(blocks)
    for long, short in QUICK:
        code = code.replace(long, short)
    names: dict[str, object] = {}
    exec(compile(code, PAGE.name, "exec", dont_inherit=True), names)
    a, b = np.random.default_rng(0).standard_normal((2, 32, 32)).astype(np.float32)
    for name in ("tuned", "alone"):
        np.testing.assert_allclose(names[name](a, b), a @ b, 1e-4, 1e-4)  # type: ignore[operator]
