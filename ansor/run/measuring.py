"""The device of a run: this machine's, the user's, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ansor.errors import ArgumentError
from ansor.executor import Executor
from ansor.measure.absent_device import AbsentDevice
from ansor.measure.device import Device
from ansor.measure.local_device import LocalDevice
from ansor.run.arguments import cluster_address
from ansor.run.settings import Settings
from ansor.targets.registry import backend_of
from ansor.targets.target import Target


@contextmanager
def measuring(
    settings: Settings, target: Target, text: str, threads: int
) -> Iterator[tuple[Device, Executor]]:
    """The device that measures, and the executor of the search on the cores of this machine.

    Args:
        settings: of the run.
        target: of the programs.
        text: of the target, with the number of threads.
        threads: of the programs.

    Raises:
        ArgumentError: Ray is not installed, or there is no cluster.
        MeasureError: no node of the cluster can measure programs for the target.
    """
    given = _given(settings, target)
    if given is not None and not isinstance(given, str):
        with given:
            yield given, given.share
        return
    with LocalDevice(text, threads, settings.config.measure) as local:
        if given is None:
            yield local, local.share
            return
        with _on_cluster(given, settings, text, threads) as cluster:
            yield cluster, local.share


def _given(settings: Settings, target: Target) -> Device | str | None:
    """The device of the settings; for another machine, a device that runs nothing."""
    if settings.device is None and backend_of(target).machine.known(target) is not None:
        return AbsentDevice()
    return settings.device


def _on_cluster(given: str, settings: Settings, target: str, threads: int) -> Device:
    if find_spec("ray") is None:
        raise ArgumentError("device", given, "needs Ray: pip install 'ansor[ray]'")
    # Ray is optional, and takes a second to import.
    from ansor.cluster.ray_nodes import ray_device

    def tell(text: str) -> None:
        for callback in settings.callbacks:
            callback.on_stage(text)

    return ray_device(cluster_address(given), target, threads, settings.config.measure, tell)
