"""Compares our own networks with those of peers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from ansor.compare.case import Case
from ansor.compare.child import EXPORT, QUANTIZE
from ansor.compare.results import Comparison, judge
from ansor.compare.system_process import Child, ChildError, run_child
from ansor.compare.systems import OWN, PEERS, SYSTEMS
from ansor.compare.turns import take_turns
from ansor.config import COMPARE
from ansor.errors import ArgumentError
from ansor.frontend.deploy.built import uncompiled
from ansor.frontend.deploy.storage import StoredModel, save_model
from ansor.run.tuned.tuned_model import TunedModel

ENTRY = ("-m", "ansor.compare.child")  # arguments of a system's process


def peer_systems(peers: Iterable[str], precision: str = "float32") -> list[str]:
    """The systems for a list of peers.

    Args:
        peers: names.
        precision: of our own network, with which each peer competes in its own way.

    Raises:
        ArgumentError: an unknown precision, or a peer that is unknown or has no such precision.
    """
    if precision not in PEERS:
        raise ArgumentError("precision", precision, f"give one of {', '.join(PEERS)}")
    known, found = PEERS[precision], list[str]()
    for peer in peers:
        if peer not in known:
            raise ArgumentError("peers", peer, f"peers in {precision}: give {', '.join(known)}")
        found += known[peer]
    return found


def prepare_low_precision(case: Case) -> None:
    """Writes the reference in float32, the ONNX file and, for int8, its form in integers.

    Raises:
        ChildError: PyTorch or ONNX Runtime fails or is not installed.
    """
    for what in (EXPORT, *([QUANTIZE] if case.precision == "int8" else [])):
        run_child(_arguments(case, what), case.threads, COMPARE.answer_timeout_s)


def save_networks(model: TunedModel, case: Case) -> None:
    """Writes the tuned and, of float32, the untuned network for the processes to load."""
    model.save(case.tuned)
    if model.baseline is not None and not case.is_low:
        save_model(StoredModel(uncompiled(model.baseline, model.compiled.target), {}), case.untuned)


def compare(
    case: Case,
    systems: Sequence[str],
    rounds: int = 3,
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Times our own networks and `systems` in turns.

    Args:
        case: what to compare; `save_networks` has been called, and before tuning in less than
            float32 `prepare_low_precision`.
        systems: names of peers, see `peer_systems`; those that cannot run are left out.
        rounds: number of starts of each system.
        tell: receives lines of progress.

    Raises:
        ChildError: one of our own networks cannot be run.
    """
    absences = {name: SYSTEMS[name].absence(case) for name in systems}
    missing = {name: reason for name, reason in absences.items() if reason}
    own = OWN[:1] if case.is_low else OWN
    names = [*own, *(name for name in systems if name not in missing)]
    if any(SYSTEMS[name].exported for name in names):
        names = _export(case, names, missing)
    outcome = take_turns(lambda name: _start(case, name), names, rounds, case.seconds, tell)
    if OWN[0] in outcome.missing:  # an untuned network may take minutes for a run
        raise ChildError(outcome.missing[OWN[0]])
    samples_s = {name: outcome.latencies_s(name) for name in outcome.answers}
    return judge(case, samples_s, missing | outcome.missing, outcome.told)


def _export(case: Case, names: list[str], missing: dict[str, str]) -> list[str]:
    """Writes the ONNX file if it is missing. If that fails, systems that need it are left out."""
    if case.onnx.exists():
        return names
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
