"""A Ray cluster on this machine that loses a node and gets another one during a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from ansor.callbacks import Callback, Round
from ansor.measure.fake import FakeDevice
from ansor.run.search.allocation import LIMITS_MET
from benchmarks.cluster_search import Searched, latency_of, products, searched, waiting_cluster
from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.ray_cluster import local_cluster

_NODES, _FUNCTIONS = 4, 6
_PROGRAM_S = 0.25  # seconds that a node waits for each program
_TRIALS: Mapping[Scale, int] = MappingProxyType({Scale.QUICK: 96, Scale.FULL: 256})
_INJECTED = "1 of 4 nodes killed, 1 added"


class _Injection(Callback):
    """Does something after the first round, and something else after the second."""

    def __init__(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        self._events = iter((first, second))

    def on_round(self, done: Round) -> None:
        """See `Callback`."""
        if (event := next(self._events, None)) is not None:
            event()


def run(scale: Scale) -> list[Row]:
    """One run on the cluster and one on a device of this process."""
    case = Case("nodes come and go", _INJECTED)
    if find_spec("ray") is None:
        return [case.row("Ray is installed", "pip install 'ansor[ray]'", None)]
    trials, messages = _TRIALS[scale], list[str]()
    alone = searched(products(_FUNCTIONS), FakeDevice(latency_of), trials)
    together = _on_cluster(trials, messages)
    return _rows(case, alone, together, messages)


def _on_cluster(trials: int, messages: list[str]) -> Searched:
    with local_cluster(_NODES) as cluster:
        victim = cluster.list_all_nodes()[-1]  # the first one is the head

        def kill() -> None:
            cluster.remove_node(victim, allow_graceful=False)

        def add() -> Any:
            return cluster.add_node(num_cpus=1)

        with waiting_cluster(cluster.address, _PROGRAM_S, messages.append) as device:
            return searched(products(_FUNCTIONS), device, trials, [_Injection(kill, add)])


def _rows(case: Case, alone: Searched, together: Searched, messages: list[str]) -> list[Row]:
    # Ray lists a killed node for some seconds more, so the pool may lose it twice.
    lost = sum("is lost" in message for message in messages)
    joined = [message for message in messages if "measures," in message]
    counts = (
        f"{together.records} records of {together.programs} programs, {alone.programs} programs on "
        "one device"
    )
    same = sum(a == b for a, b in zip(alone.best_s, together.best_s, strict=True))
    return [
        case.row(
            "the node is missed and the new one measures",
            f"{len(joined)} nodes joined, {lost} losses noticed, at the end {joined[-1]}",
            len(joined) == _NODES + 1 and lost > 0 and f"{_NODES} in all" in joined[-1],
        ),
        case.row(
            "each program of the search on one device is recorded once",
            counts,
            together.records == together.programs == alone.programs,
        ),
        case.row("the run ends", together.finish.reason, together.finish.reason == LIMITS_MET),
        case.row(
            "the best of each function is that of one device",
            f"{same} of {len(alone.best_s)} functions",
            same == len(alone.best_s),
        ),
    ]
