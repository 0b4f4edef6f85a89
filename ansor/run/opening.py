"""Opens what a run needs: threads, records, logs and the device; closes it all at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ansor.config import TuneConfig
from ansor.database.log import logged, opened_records
from ansor.executor import Executor, in_turns
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.run.arguments import opened
from ansor.run.garbage_collection import frozen_heap
from ansor.run.session import Session
from ansor.run.settings import Settings
from ansor.targets.host.threads import start_threads
from ansor.targets.target import Target, target_text


@contextmanager
def opened_session(settings: Settings, target: Target, began_s: float) -> Iterator[Session]:
    """A session with its database and its device.

    Args:
        settings: of the run.
        target: that the networks are tuned for.
        began_s: when the run began, by `time.monotonic`.
    """
    # Threads come first: a number that the system refuses must not show after the search.
    threads = start_threads(settings.threads)
    text = target_text(target, threads)

    def clock() -> float:
        return time.monotonic() - began_s

    with (
        frozen_heap(),
        ExitStack() as stack,
        opened(settings.database) as records,
        logged(records, settings.log),
        _measuring(settings.device, text, threads, settings.config) as (device, executor),
    ):
        sources = [opened_records("transfer", source) for source in settings.sources]
        earlier = tuple(map(stack.enter_context, sources))
        device.start(1)  # in the background, where it takes as long as to import a model
        session = Session(
            settings, target, text, threads, records, device, executor, clock, earlier
        )
        try:
            yield session
        finally:
            session.journal.release()


@contextmanager
def _measuring(
    device: Device | None, target: str, threads: int, config: TuneConfig
) -> Iterator[tuple[Device, Executor]]:
    """The device that measures, and the executor of the search on the cores of this machine."""
    if device is not None:
        with device:
            yield device, in_turns
        return
    with LocalDevice(target, threads, config.measure) as local:
        yield local, local.share
