"""Processes that a run has started, however they end or detach themselves."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

_MARK = "ANSOR_FAULT_MARK"  # environment variable, which every process that is started inherits
_POLL_S = 0.1


@contextmanager
def marking() -> Iterator[str]:
    """Gives the processes that are started meanwhile, and their children, a mark."""
    mark = uuid.uuid4().hex
    os.environ[_MARK] = mark
    try:
        yield mark
    finally:
        del os.environ[_MARK]


def marked(mark: str) -> list[psutil.Process]:
    """The processes with a mark that run."""
    return [process for process in psutil.process_iter() if _has(process, mark)]


def left_after(mark: str, within_s: float) -> int:
    """Number of processes with a mark after `within_s` seconds; returns early if there are none."""
    end = time.monotonic() + within_s
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(_POLL_S)
    return len(left)


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        runs = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
        return bool(runs and process.environ().get(_MARK) == mark)
    except psutil.Error:  # it has ended, or belongs to another user
        return False
