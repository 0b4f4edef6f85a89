"""The worker process: answers requests until the parent is gone.

Programs are timed here, in place: machine code is never linked, saved or copied.
"""

from __future__ import annotations

import time

from ansor.config import WORKERS
from ansor.measure.channel import Channel
from ansor.measure.child.resource_limits import limit_resources
from ansor.measure.child.runner import Runner
from ansor.measure.child.stage import StageError
from ansor.measure.child.task_table import TaskTable
from ansor.measure.protocol import (
    Build,
    Call,
    Compare,
    Define,
    Rehearse,
    RemoteRequest,
    Reply,
    Request,
    Setup,
    Time,
    Verify,
)
from ansor.measure.result import ErrorKind
from ansor.targets.registry import load_backend


def main(read_fd: int, write_fd: int) -> None:
    """Serves one parent; returns when it closes the pipe."""
    channel = Channel(read_fd, write_fd)
    setup = channel.receive()
    assert isinstance(setup, Setup)
    limit_resources(setup.memory_bytes)
    runner = Runner(TaskTable(setup.config, load_backend(setup.backend)), here=setup.here)
    channel.send(Reply())
    serve_requests(channel, runner)


def serve_requests(channel: Channel, runner: Runner) -> None:
    """Answers requests, in order, until the pipe ends."""
    while True:
        try:
            request = channel.receive()
        except EOFError:
            return
        channel.send(answer(runner, request))  # type: ignore[arg-type]


def answer(runner: Runner, request: Request) -> Reply:
    """Runs one request; every exception becomes a reply."""
    start = time.perf_counter()
    try:
        value, kind, text = dispatch(runner, request), None, ""
    except StageError as error:
        value, kind, text = None, error.kind, first_lines(str(error))
    except Exception as error:
        value, kind, text = None, ErrorKind.RUN, first_lines(repr(error))
    return Reply(value, kind, text, time.perf_counter() - start)


def dispatch(runner: Runner, request: Request) -> object:
    """Calls the runner's method for the request."""
    match request:
        case Define():
            runner.define(request)
        case Build(key, slot, program):
            runner.build(key, slot, program)
        case Time(slot, best_s):
            return runner.time(slot, best_s)
        case Compare(slots, keep):
            return runner.compare(slots, keep)
        case Rehearse():
            return runner.rehearse(request)
        case Verify(key, program):
            return runner.verify(key, program)
        case Call(function, arguments):
            return function(*arguments)
        case RemoteRequest():
            return runner.remote.answer(request)
        case _:
            raise TypeError(f"unknown request {request!r}")
    return None


def first_lines(text: str) -> str:
    """The beginning of a text, without blank lines."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[: WORKERS.error_lines])[: WORKERS.error_characters]
