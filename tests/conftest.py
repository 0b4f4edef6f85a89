"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from error_messages import check_message

from ansor.cli.main import Failure
from ansor.targets.host.threads import available_cores, use_threads

_raises, _show = pytest.raises, Failure.show


@contextmanager
def raises(*expected: Any, **options: Any) -> Iterator[Any]:
    """`pytest.raises` that also checks the message of an error for users."""
    with _raises(*expected, **options) as caught:
        yield caught
    check_message(caught.value)


def show(failure: Failure, file: Any = None) -> None:
    """`Failure.show` that also checks the message."""
    check_message(failure.__cause__)
    _show(failure, file)


# Each test module takes these from their own modules, so that no test can leave the check out.
pytest.raises = raises  # type: ignore[assignment]
Failure.show = show  # type: ignore[method-assign]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files anew, compare nothing"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True, scope="session")
def all_cores() -> None:
    """Every test's kernels run on all cores unless the test chooses threads."""
    use_threads(available_cores())


@pytest.fixture(autouse=True)
def cores() -> Iterator[None]:
    """A test leaves the cores that its thread may run on as they were."""
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Interrupts raise `KeyboardInterrupt`, even where a shell started the tests to ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
