"""Chooses the fastest of networks that compute the same in different precisions.

Sums of latencies give the networks near the fastest. These are compiled and timed as a whole, in
turns, because conversions between functions and the state of the caches matter, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from tvm.target import Target

from ansor.config import PRECISION, MeasureConfig
from ansor.database.database import Database
from ansor.frontend.call_planning import call_plan
from ansor.measure.device import Device
from ansor.run.finish import Finisher
from ansor.run.prepare import Network
from ansor.run.search.tuner import Tuner
from ansor.run.tuned.tuned_model import TunedModel
from ansor.run.winners.choose import Winner, choose_winners
from ansor.run.winners.leaders import were_elected

K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network that may be the result, and the tuner of its functions."""

    network: Network
    tuner: Tuner


@contextmanager
def compiling(
    target: Target, threads: int, candidates: Mapping[K, Candidate]
) -> Iterator[dict[K, Finisher]]:
    """An executor that compiles networks in the background, one after the other."""
    with ThreadPoolExecutor(max_workers=1) as background:
        yield {
            key: Finisher(each.network, target, threads, background)
            for key, each in candidates.items()
        }


def winners_of(
    candidate: Candidate,
    device: Device,
    database: Database,
    config: MeasureConfig,
    leaders: int,
    finisher: Finisher,
) -> dict[str, Winner]:
    """The winners of the functions of one network; its compilation begins before their checks.

    Args:
        leaders: programs of a function that are timed again.
        finisher: of the network.

    Other arguments are those of `choose_winners`.
    """
    network = candidate.network
    functions, plan = candidate.tuner.functions(network.tasks), call_plan(network.mod)
    return choose_winners(functions, plan, device, database, config, leaders, finisher.begin)


def were_compared(
    candidates: Iterable[Candidate], database: Database, ended_s: float | None
) -> bool:
    """Whether an interrupted run compared the leaders of all functions.

    Args:
        candidates: the networks.
        database: of the elections.
        ended_s: time of that run's last measurement, in seconds since 1970; None if there is no
            such run, or if there was a measurement since.
    """
    return ended_s is not None and all(
        were_elected(each.tuner.functions(each.network.tasks), database, ended_s)
        for each in candidates
    )


def near_fastest(
    mixture: Network, pure: Sequence[Network], tuner: Tuner, most: int | None
) -> list[Network]:
    """The networks near the least sum of latencies, the least first.

    Args:
        mixture: of two precisions; the only network if no other was measured.
        pure: the networks in one of them.
        tuner: of the functions of all.
        most: number of networks that the time is enough to compile; None is no limit.
    """
    distinct = [mixture, *(x for x in pure if x.short != mixture.short)]
    timed = [(tuner.seconds_of(network.tasks), network) for network in distinct]
    known = sorted(
        ((math.inf if seconds is None else seconds, network) for seconds, network in timed),
        key=lambda pair: pair[0],
    )
    near = known[0][0] * (1 + PRECISION.rival_margin)
    found = [network for seconds, network in known if math.isfinite(seconds) and seconds <= near]
    return found[:most] or [mixture]


def fastest_first(tuned: Sequence[TunedModel]) -> list[int]:
    """Numbers of compiled networks by their latencies, timed in turns."""
    if len(tuned) == 1:
        return [0]
    turns = [
        [model.compiled.latency(PRECISION.turn_s, repeats=1) for model in tuned]
        for _ in range(PRECISION.turns)
    ]
    return [int(number) for number in np.argsort(np.median(turns, axis=0), kind="stable")]
