"""The nodes of a Ray cluster. No other module imports Ray."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ansor.closing import Closing
from ansor.cluster.device import ClusterDevice
from ansor.cluster.fingerprint import fingerprint_here
from ansor.cluster.measurer import DeviceFactory, Measurer, local_device, package_versions
from ansor.cluster.node_pool import NodePool, Tell
from ansor.cluster.nodes import Assignment, NodeLostError, NodeReport
from ansor.config import CLUSTER, MeasureConfig
from ansor.errors import ArgumentError, MeasureError

AUTO = "auto"
_ATTEMPTS = "RAY_gcs_server_port_wait_time_s"  # read by Ray's `Node`, in attempts of some seconds


class RayNodes(Closing):
    """The nodes of a Ray cluster that have cores; see `Nodes`.

    Each measurer is an actor that holds all cores of its node, so no other work of Ray runs there.

    Args:
        address: of the cluster, as "host:port"; "auto" for the one that runs on this machine.
        assignment: of the measurements.
        make_device: the device of each node.

    Raises:
        ArgumentError: there is no cluster.
    """

    def __init__(
        self, address: str, assignment: Assignment, make_device: DeviceFactory = local_device
    ) -> None:
        self._assignment, self._make_device = assignment, make_device
        self._actors: dict[str, Any] = {}
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            _connect(address)

    def names(self) -> list[str]:
        """See `Nodes.names`.

        Raises:
            MeasureError: the cluster's head is lost.
        """
        return [node["NodeID"] for node in self._alive()]

    def _alive(self) -> list[dict[str, Any]]:
        try:
            nodes = ray.nodes()
        except (RayError, ConnectionError, RuntimeError) as error:
            raise MeasureError(
                f"the head of the Ray cluster does not answer: {error}",
                "start the cluster again with `ray start --head`",
            ) from error
        return [node for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]

    def open(self, node: str) -> None:
        """See `Nodes.open`."""
        found = [each["Resources"] for each in self._alive() if each["NodeID"] == node]
        resources = found[0] if found else {"CPU": 1}  # lost since: the first call fails
        options = {
            "num_cpus": resources["CPU"],
            "num_gpus": resources.get("GPU", 0),
            "max_restarts": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        actor = ray.remote(Measurer).options(**options)
        self._actors[node] = actor.remote(self._assignment, self._make_device)

    def call(self, node: str, method: str, *arguments: Any) -> object:
        """See `Nodes.call`."""
        ticket: object = getattr(self._actors[node], method).remote(*arguments)
        return ticket

    def wait(self, tickets: Sequence[object], seconds: float) -> list[object]:
        """See `Nodes.wait`."""
        if not tickets:
            time.sleep(seconds)
            return []
        done, rest = ray.wait(list(tickets), timeout=seconds)
        if done and rest:
            done += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return list(done)

    def result(self, ticket: object) -> Any:
        """See `Nodes.result`."""
        try:
            return ray.get(ticket)
        except RayError as error:  # the end of a node, of a process, and what a method raised
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise NodeLostError(lines[-1].strip()) from error

    def drop(self, node: str) -> None:
        """See `Nodes.drop`."""
        actor = self._actors.pop(node, None)
        if actor is not None:
            ray.kill(actor)

    def now(self) -> float:
        """See `Nodes.now`."""
        return time.monotonic()

    def close(self) -> None:
        """See `Nodes.close`."""
        if ray.is_initialized():
            for node in list(self._actors):
                self.drop(node)
            if self._connected_here:
                ray.shutdown()


def _connect(address: str) -> None:
    """Raises an `ArgumentError` if there is no cluster."""
    try:
        if address != AUTO:
            _check_port(address)
        with _few_attempts():
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        remedy = f"no Ray cluster answers ({reason}); start one with: ray start --head"
        raise ArgumentError("cluster", address, remedy) from error


def _check_port(address: str) -> None:
    """Raises an OSError or a ValueError if nothing listens at "host:port"."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), CLUSTER.connect_s):
        pass


@contextmanager
def _few_attempts() -> Iterator[None]:
    """Limits Ray's wait to 10 s. By default it waits minutes for the last cluster of this machine,
    which may have ended."""
    before = os.environ.get(_ATTEMPTS)
    os.environ[_ATTEMPTS] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ATTEMPTS]


def ray_device(
    address: str, target: str, threads: int, config: MeasureConfig, tell: Tell
) -> ClusterDevice:
    """A device on the nodes of a Ray cluster that are equal.

    Args:
        address: of the cluster, or "auto".
        target: text of the TVM target.
        threads: of a kernel while it is timed.
        config: of the measurements.
        tell: gets a message when nodes come, go, or are left out.

    Raises:
        ArgumentError: there is no cluster.
        MeasureError: none of its nodes can measure programs for the target.
    """
    assignment = Assignment(target, threads, config, CLUSTER)
    return pooled(RayNodes(address, assignment), assignment, tell)


def pooled(nodes: RayNodes, assignment: Assignment, tell: Tell) -> ClusterDevice:
    """The device on these nodes, once some of them measure."""
    try:
        fingerprint = fingerprint_here(assignment.target, assignment.threads)
        here = NodeReport("", fingerprint, package_versions())
        pool = NodePool(nodes, assignment, here, tell)
        pool.wait_for_nodes()
    except BaseException:
        nodes.close()
        raise
    return ClusterDevice(pool, assignment.measure)
