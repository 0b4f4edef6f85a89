"""Opens the resources of a run: threads, records, logs and the device. Closes them at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ansor.database.log import logged, opened_records
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.precision.stages import WIDE
from ansor.run.arguments import check_threads_here, opened
from ansor.run.garbage_collection import frozen_heap
from ansor.run.measuring import measuring
from ansor.run.session import Session
from ansor.run.settings import Settings
from ansor.targets.host.threads import start_threads
from ansor.targets.registry import backend_of
from ansor.targets.target import (
    NATIVE,
    Target,
    check_runs_here,
    resolve_target,
    runs_here,
    target_text,
)


def target_of(target: str | Target, settings: Settings) -> Target:
    """The target of a run: the device's, if the device is another machine.

    Args:
        target: as the user wrote it.

    Raises:
        ArgumentError: the device runs programs for another target, or has its own threads.
        UnsupportedError: the precision is to be chosen for another machine.

    Other errors are those of `check_machine`.
    """
    device = settings.device
    remote = None if device is None or isinstance(device, str) else device.remote()
    if remote is None:
        resolved = resolve_target(target)
        check_machine(resolved, settings)
        return resolved
    if target != NATIVE and target_text(resolve_target(target), remote.threads) != remote.target:
        remedy = f"the device runs programs for {remote.target}; leave the target out"
        raise ArgumentError("target", str(target), remedy)
    if settings.threads is not None:
        remedy = "give the threads of the programs to the device"
        raise ArgumentError("threads", settings.threads, remedy)
    resolved = resolve_target(remote.target)
    if settings.precision != WIDE and not runs_here(resolved):
        remedy = f'give precision="{WIDE}"'
        raise UnsupportedError(f"target {remote.target}: the error cannot be measured here", remedy)
    return resolved


def check_machine(target: Target, settings: Settings) -> None:
    """Whether a run can be done for a target on this machine.

    Raises:
        ArgumentError: this machine has fewer cores than the threads of the run.
        UnsupportedError: the machine cannot run programs for the target, and its parameters are not
            known, or the run needs measurements or results of programs.
    """
    try:
        check_runs_here(target)
    except UnsupportedError as error:
        if backend_of(target).machine.known(target) is None:
            raise
        if settings.searches and settings.device is None:
            raise UnsupportedError(
                error.problem, "give trials=0, or leave the budget out"
            ) from error
        if settings.precision != WIDE:
            remedy = f'give precision="{WIDE}"'
            raise UnsupportedError(
                f"{error.problem}: the error cannot be measured here", remedy
            ) from error
    else:
        check_threads_here(settings.threads)


@contextmanager
def opened_session(settings: Settings, target: Target, began_s: float) -> Iterator[Session]:
    """A session with its database and its device.

    Args:
        settings: of the run.
        target: that the networks are tuned for.
        began_s: when the run began, by `time.monotonic`.
    """
    # Threads come first: an impossible number must fail before the search.
    threads = _threads(settings.threads, target)
    text = target_text(target, threads)

    def clock() -> float:
        return time.monotonic() - began_s

    with (
        frozen_heap(),
        ExitStack() as stack,
        opened(settings.database) as records,
        logged(records, settings.log),
        measuring(settings, target, text, threads) as (device, executor),
    ):
        remote = device.remote()
        if remote is not None:
            threads, text = remote.threads, remote.target
        sources = [opened_records("transfer", source) for source in settings.sources]
        earlier = tuple(map(stack.enter_context, sources))
        device.start(1)  # in the background, during the import of the model
        session = Session(
            settings, target, text, threads, records, device, executor, clock, remote, earlier
        )
        try:
            yield session
        finally:
            session.journal.release()


def _threads(wanted: int | None, target: Target) -> int:
    """The number of threads of programs; starts the threads of this machine."""
    known = backend_of(target).machine.known(target)
    if known is None:
        return start_threads(wanted)
    start_threads(None)
    return wanted or int(known.cores)
