"""Compares our own networks with those of peers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from ansor.compare.case import Case
from ansor.compare.child import EXPORT
from ansor.compare.results import Comparison, judge
from ansor.compare.system_process import Child, ChildError, run_child
from ansor.compare.systems import OWN, PEERS, SYSTEMS
from ansor.compare.turns import take_turns
from ansor.config import COMPARE
from ansor.errors import ArgumentError
from ansor.frontend.deploy.built import uncompiled
from ansor.frontend.deploy.storage import StoredModel, save_model
from ansor.run.tuned import TunedModel

ENTRY = ("-m", "ansor.compare.child")  # what a process runs


def peer_systems(peers: Iterable[str]) -> list[str]:
    """The systems that a list of peers stands for.

    Raises:
        ArgumentError: an unknown peer.
    """
    found: list[str] = []
    for peer in peers:
        if peer not in PEERS:
            raise ArgumentError("peers", peer, f"peers are {', '.join(PEERS)}")
        found += PEERS[peer]
    return found


def save_networks(model: TunedModel, case: Case) -> None:
    """Writes the tuned and the untuned network for the processes to load."""
    model.save(case.tuned)
    if model.baseline is not None:
        save_model(StoredModel(uncompiled(model.baseline, model.compiled.target), {}), case.untuned)


def compare(
    case: Case,
    systems: Sequence[str],
    rounds: int = 3,
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Times our own networks and `systems` in turns.

    Args:
        case: what to compare; `save_networks` has been called.
        systems: names of peers, see `peer_systems`; those that cannot run are left out.
        rounds: how often each system is started.
        tell: receives a line of progress now and then.

    Raises:
        ChildError: one of our own networks cannot be run.
    """
    absences = {name: SYSTEMS[name].absence(case) for name in systems}
    missing = {name: reason for name, reason in absences.items() if reason}
    names = [*OWN, *(name for name in systems if name not in missing)]
    if any(SYSTEMS[name].exported for name in names):
        names = _export(case, names, missing)
    outcome = take_turns(lambda name: _start(case, name), names, rounds, case.seconds, tell)
    if OWN[0] in outcome.missing:  # an untuned network may take minutes for a run
        raise ChildError(outcome.missing[OWN[0]])
    samples_s = {name: outcome.latencies_s(name) for name in outcome.answers}
    return judge(case, samples_s, missing | outcome.missing)


def _export(case: Case, names: list[str], missing: dict[str, str]) -> list[str]:
    """Writes the ONNX file; if that fails, whoever needs it is left out."""
    try:
        run_child(_arguments(case, EXPORT), case.threads, COMPARE.answer_timeout_s)
    except ChildError as error:
        missing |= {name: f"no ONNX file: {error}" for name in names if SYSTEMS[name].exported}
        return [name for name in names if name not in missing]
    return names


def _start(case: Case, system: str) -> Child:
    return Child(_arguments(case, system), case.threads, COMPARE.answer_timeout_s)


def _arguments(case: Case, what: str) -> list[str]:
    return [*ENTRY, what, json.dumps(asdict(case))]
