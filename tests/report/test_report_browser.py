"""The page in headless Chromium: all marks are there, nothing is logged, and it answers soon.

`make check-report` runs this for a ResNet-50, whose folder the variable ANSOR_REPORT names, and
measures the time then.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reports import DOCUMENT, NASTY, with_texts

from ansor.report.document.collect import collect
from ansor.report.document.document import Document
from ansor.report.html.charts import MOST_POINTS
from ansor.report.html.page import page

FOLDER = os.environ.get("ANSOR_REPORT")
MOST_BYTES = 3e6  # of the page of a ResNet-50
MOST_READY_MS = 2000.0  # until its plots answer
WAIT_S = 60.0  # a loaded machine is slow
OPTIONS = (
    *("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
    *("disable-background-networking", "disable-component-update", "disable-sync"),
    "window-size=1280,1000",
)
PROGRAMS = ("chromium", "chromedriver")

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in PROGRAMS),
    reason=f"needs {' and '.join(PROGRAMS)}: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in (*OPTIONS, f"user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(f"--{option}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_page_load_timeout(WAIT_S)
        yield driver


def opened(browser: Any, file: Path) -> float:
    """Opens a page; returns the milliseconds until its plots answered."""
    browser.get(file.as_uri())
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        ready = browser.execute_script("return document.documentElement.dataset.ready")
        if ready is not None:
            return float(ready)
        time.sleep(0.05)
    raise AssertionError(f"not ready: {browser.get_log('browser')}")


def marks(browser: Any, name: str, kind: str) -> int:
    """Marks of a kind in a plot."""
    query = f"#chart-{name} .mark-{kind}.role-mark > *"
    return int(
        browser.execute_script("return document.querySelectorAll(arguments[0]).length", query)
    )


def drawn_predictions(count: int) -> int:
    """The number of points for `count` programs: every k-th program, with the smallest k."""
    step = next(k for k in range(1, count + 2) if count <= k * MOST_POINTS)
    return len(range(0, count, step))


def expected_marks(document: Document) -> dict[tuple[str, str], int]:
    """The number of marks by plot and kind."""
    timed = [row for row in document.functions if row.latency_s]
    rated = [row for row in timed if row.rate and row.intensity]
    points = sum(map(len, document.function_curves.values()))
    found = {
        ("functions", "rect"): min(len(timed), 24),
        ("roofline", "symbol"): len(rated) if document.machine else 0,
        ("network_curve", "symbol"): len(document.network_curve),
        ("function_curves", "symbol"): points,
        ("predictions", "symbol"): drawn_predictions(len(document.predictions)),
        ("failures", "rect"): len({each.kind for each in document.failures}),
    }
    if document.comparison is not None:
        found["comparison", "rect"] = len(document.comparison.systems) - 1
    return found


@pytest.fixture(scope="module")
def document() -> Document:
    return DOCUMENT if FOLDER is None else collect(FOLDER)


def test_the_page_draws_every_mark_and_logs_nothing(
    browser: Any, tmp_path: Path, document: Document
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(document), encoding="utf-8")
    ready_ms = opened(browser, file)
    expected = expected_marks(document)
    assert {each: marks(browser, *each) for each in expected} == expected
    assert browser.get_log("browser") == []
    if FOLDER is not None:
        assert file.stat().st_size <= MOST_BYTES
        assert ready_ms <= MOST_READY_MS


def test_the_page_needs_no_network(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(DOCUMENT), encoding="utf-8")
    opened(browser, file)
    script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert browser.execute_script(script) == []


def test_nasty_texts_run_no_script(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(with_texts(DOCUMENT, NASTY)), encoding="utf-8")
    opened(browser, file)
    assert browser.execute_script("return window.broken === undefined")
    assert browser.get_log("browser") == []


def test_a_click_on_a_header_sorts_the_table(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(DOCUMENT), encoding="utf-8")
    opened(browser, file)
    script = """
        const table = document.querySelector("#functions table");
        table.tHead.rows[0].cells[arguments[0]].querySelector("button").click();
        return [...table.tBodies[0].rows].map((row) => row.cells[0].textContent.trim());
    """
    falling = browser.execute_script(script, 2)  # latency: one function has none
    rising = browser.execute_script(script, 2)
    assert falling == ["fused_conv2d", "mean", "transpose"]
    assert rising == ["mean", "fused_conv2d", "transpose"]
    assert browser.execute_script(script, 0) == ["transpose", "mean", "fused_conv2d"]
