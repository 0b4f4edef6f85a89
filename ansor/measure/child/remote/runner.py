"""Answers the requests of a device behind TVM's RPC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ansor.measure.child.remote.session import RemoteSession, ServerError, is_session_timeout
from ansor.measure.child.remote.timing import compare_there, time_there
from ansor.measure.child.stage import StageError, stage
from ansor.measure.child.task_table import TaskTable
from ansor.measure.child.worker_task import WorkerTask
from ansor.measure.protocol import (
    CallThere,
    CompareThere,
    Connect,
    Export,
    Prepare,
    RemoteRequest,
    TimeThere,
    VerifyThere,
)
from ansor.measure.remote_program import Library, Parameter
from ansor.measure.result import ErrorKind
from ansor.program.program import Program
from ansor.targets.build import lowered_function
from ansor.targets.library import deployable


@dataclass(frozen=True)
class Prepared:
    """A program that is ready for its check on a server."""

    task: WorkerTask
    program: Program
    library: Library


@dataclass
class RemoteRunner:
    """Builds libraries, and runs them on the server that it is connected with.

    Attributes:
        table: of the tasks.
    """

    table: TaskTable
    slots: dict[int, Prepared] = field(default_factory=dict)
    _session: RemoteSession | None = None

    def answer(self, request: RemoteRequest) -> object:
        """Executes a request."""
        match request:
            case Export(key, program, linker):
                return self._library(key, program, linker)
            case Prepare(key, slot, program, linker):
                self._prepare(key, slot, program, linker)
                return None
            case VerifyThere(slot):
                return self._verify(self.slots.pop(slot))
            case Connect():
                self._connect(request)
                return None
            case _:
                return self._there(request)

    def _there(self, request: RemoteRequest) -> object:
        """Calls a function in the open session."""
        session, config = self._session, self.table.config
        assert session is not None
        with _on_server(session):
            match request:
                case TimeThere(library, best_s, cold):
                    return time_there(session, library, best_s, cold, config)
                case CompareThere(libraries, rounds, seconds, cold):
                    return compare_there(session, libraries, rounds, seconds, cold, config)
                case CallThere(function, arguments):
                    return function(session, *arguments)
                case _:
                    raise TypeError(f"unknown request {request!r}")

    def _connect(self, request: Connect) -> None:
        try:
            self._session = RemoteSession(request, self.table.config)
        except ServerError as error:
            raise StageError(ErrorKind.RUN, error) from error
        except Exception as error:  # TVM's own, of many kinds
            raise StageError(ErrorKind.DEVICE, error) from error

    def _library(self, key: str, program: Program, linker: str | None) -> Library:
        task = self.table.tasks[key]
        with stage(ErrorKind.LOWER):
            func = self.table.lowered(task, program)
        with stage(ErrorKind.BUILD):
            suffix, code = deployable(lowered_function(func, task.target), linker)
        params = tuple(Parameter(tuple(map(int, p.shape)), str(p.dtype)) for p in func.params)
        return Library(code, suffix, params)

    def _prepare(self, key: str, slot: int, program: Program, linker: str | None) -> None:
        task = self.table.tasks[key]
        self.table.make_room(task)
        library = self._library(key, program, linker)
        with stage(ErrorKind.RUN):
            _ = task.reference
        self.slots[slot] = Prepared(task, program, library)

    def _verify(self, prepared: Prepared) -> float:
        """Difference between the program's results on a server and the reference."""
        session = self._session
        assert session is not None
        try:
            with _on_server(session):
                module = session.load(prepared.library)
                return self.table.difference(
                    prepared.task, prepared.program, module, session.device
                )
        finally:
            self._session = None  # this ends the session; the process continues


@contextmanager
def _on_server(session: RemoteSession) -> Iterator[None]:
    """Gives every exception a kind: an error of the program if the server still answers."""
    try:
        yield
    except Exception as error:
        if is_session_timeout(error):
            raise StageError(ErrorKind.TIMEOUT, error) from error
        kind = ErrorKind.RUN if session.is_alive() else ErrorKind.DEVICE
        raise StageError(kind, error) from error
