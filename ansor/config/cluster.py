"""Clusters of equal machines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterConfig:
    """Nodes that join, leave and slow down (`ansor.cluster`)."""

    connect_s: float = 5.0  # longest wait for an answer of the cluster's address
    poll_s: float = 2.0  # between two reads of the list of nodes
    start_s: float = 120.0  # longest wait for a node's description; TVM's import takes 3 to 10 s
    choice_s: float = 20.0  # from the first description to the choice of the kind of machine
    alone_s: float = 600.0  # longest time without any node, after which the run ends
    answer_s: float = 60.0  # longest wait for a node, beyond the time limits of its work
    tries: int = 3  # of a batch whose nodes are lost; after them its programs count as crashed
    node_losses: int = 5  # losses of a node in a row, after which it gets no further batch
    # A node drifts above one of these ratios of the reference kernel's time, as with
    # `MeasureConfig.quiet_factor`.
    slower_than_best: float = 1.25  # to the node's own shortest time
    slower_than_group: float = 1.25  # to the median of the group's last times
    least_group: int = 3  # nodes of a group whose median is compared
    reference_runs: int = 8  # of the kernel, 0.1 ms each; the shortest counts
    # Attempts before a node drifts: other work holds a core for milliseconds at a time.
    reference_tries: int = 5
    reference_pause_s: float = 0.2  # between two attempts
    rest_s: float = 60.0  # between two references of a node that drifts


CLUSTER = ClusterConfig()
