"""The per-task table against golden text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.report.formatting import align, gflops, microseconds, milliseconds, percent, shorten
from ansor.report.network_html import network_html
from ansor.report.network_table import Summary, network_table
from ansor.results import TaskResult

GOLDEN = Path(__file__).parent / "golden"


SKETCH = "3677876a"

ROWS = (
    TaskResult("fused_mean", 1, 25_600, 2.5e-6, 16, "bac719f3", 0.0),
    TaskResult(
        "fused_conv2d_add_relu",
        2,
        231_612_416,
        500e-6,
        64,
        SKETCH,
        9.87e-07,
        variant="winograd4",
        runner_up_s=1.0213 * 500e-6,
        untuned_s=87.3 * 500e-6,
        spread=0.008,
    ),
    TaskResult("transpose", 1, 0, 40e-6, 8, "848f0012", 0.0),
    TaskResult(
        "conv_" * 12, 1, 1_000_000, None, 4, "untuned", None, note="build: no such intrinsic"
    ),
)
SUMMARIES = {
    "known": Summary(1.1e-3, 1.6, 512e9, 240.4, 1234, "time is up"),
    "unknown": Summary(),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_table(name: str, update_golden: bool) -> None:
    text = network_table(ROWS, SUMMARIES[name])
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")
    assert f"{text}\n" == file.read_text(encoding="utf-8")


def test_a_network_without_tasks_has_a_table() -> None:
    assert "network, measured as a whole: 1.00 ms" in network_table((), Summary(1e-3))


def test_numbers_have_three_digits_and_no_exponent() -> None:
    assert [milliseconds(t) for t in (None, 4.66e-6, 1e-3, 0.0123456, 1.6, 0.0)] == [
        "-", "0.00466", "1.00", "12.3", "1600", "0"
    ]  # fmt: skip
    assert microseconds(26.66e-6) == "26.7"
    assert gflops(2 * 10**9, 0.5) == "4.00"
    assert gflops(0, 1.0) == gflops(1, None) == "-"
    assert percent(0.25, 1.0) == "25.0%"
    assert percent(None, 1.0) == percent(1.0, 0.0) == percent(1.0, None) == "-"


def test_long_names_lose_their_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcd…ghijk"
    assert len(shorten("x" * 99, 10)) == 10
    assert shorten("first\nsecond", 20) == "first"


def test_columns_are_aligned() -> None:
    text = align(("a", "bb"), [("long", "1"), ("s", "22")])
    assert text.splitlines() == ["a     bb", "----  --", "long   1", "s     22"]


def test_a_notebook_shows_the_functions_with_escaped_names() -> None:
    rows = [*ROWS, TaskResult("<script>alert(1)</script>", 1, 0, 1e-6, 3, SKETCH, None)]
    text = network_html(rows)
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert text.count("<tr>") == 1 + len(rows)
    names = [text.index(f">{name}<") for name in ("fused_conv2d_add_relu", "transpose")]
    assert names == sorted(names), "the largest share first"
    assert "5 functions" in text
