"""Clusters of equal machines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterConfig:
    """Nodes that join, leave and slow down (`ansor.cluster`)."""

    connect_s: float = 5.0  # until a cluster's address has answered
    poll_s: float = 2.0  # between two looks at the list of nodes
    start_s: float = 120.0  # until a node describes itself: its process imports TVM, in 3 to 10 s
    choice_s: float = 20.0  # after the first description, for others, before the kind is chosen
    alone_s: float = 600.0  # without any node, until the run ends
    answer_s: float = 60.0  # of a node, beyond the time that its work may take
    tries: int = 3  # of a batch whose nodes were lost; then its programs count as crashed
    node_losses: int = 5  # of a node, one after the other, after which it is not asked again
    # Ratios of the reference kernel's time, as `MeasureConfig.quiet_factor`.
    slower_than_best: float = 1.25  # a node drifts that takes this times its shortest time
    slower_than_group: float = 1.25  # or this times the median of the group's last times
    least_group: int = 3  # nodes that have a median worth comparing with
    reference_runs: int = 8  # of the kernel, 0.1 ms each; the shortest counts
    # Repeated before a node counts as slow: other work holds a core for milliseconds at a time.
    reference_tries: int = 5
    reference_pause_s: float = 0.2  # between them
    rest_s: float = 60.0  # between two references of a node that drifts


CLUSTER = ClusterConfig()
