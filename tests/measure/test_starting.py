"""Workers that start: the last after the first, and who is ready does not wait for the others."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest

from ansor.config import MeasureConfig
from ansor.errors import MeasureError
from ansor.measure import pool as pools
from ansor.measure.pool import Pool, worker_environment
from ansor.measure.process import WorkerProcess, readable
from ansor.measure.protocol import Setup, Time

LOWERING = "ansor.program.lower:lower"


def worker(lowering: str = LOWERING) -> WorkerProcess:
    return WorkerProcess(Setup(MeasureConfig(), lowering), worker_environment(1))


def two_workers(monkeypatch: pytest.MonkeyPatch, lowering: str = LOWERING) -> Pool:
    monkeypatch.setattr(pools.os, "sched_getaffinity", lambda _: {0, 1})
    return Pool(1, MeasureConfig(workers=2), lowering)


def test_a_worker_begins_when_nobody_holds_the_pipe_any_more() -> None:
    read_fd, write_fd = os.pipe()
    first, second = worker(), worker()
    try:
        second.start(after=read_fd)
        began = time.perf_counter()
        first.start(until=write_fd)
        first.ready()
        assert not readable([second.fileno()], 2 * (time.perf_counter() - began))
        os.close(write_fd)
        second.ready()
        assert second.is_ready
    finally:
        os.close(read_fd)
        first.kill()
        second.kill()


def test_who_is_ready_works_while_others_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown slots are refused at once: all are by the first worker, which the other waits for."""
    pool = two_workers(monkeypatch)
    try:
        jobs = {i: partial(lambda i, w: w.send(Time(i, None), 10.0), i) for i in range(3)}
        ended = pool.spread(jobs)
        assert {w for w, _ in ended.values()} == {pool.workers[0]}
        assert pool.workers[1].is_starting
        pool.workers[1].ready()
    finally:
        pool.close()


def test_workers_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = two_workers(monkeypatch, lowering="no_such_module:lower")
    try:
        with pytest.raises(MeasureError, match="did not start"):
            pool.spread({0: lambda w: w.send(Time(0, None), 10.0)})
    finally:
        pool.close()
