"""Times several systems in turns, every one in a process of its own."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from ansor.compare.case import Case
from ansor.compare.child import EXPORT
from ansor.compare.process import ChildError, run_child
from ansor.compare.systems import OWN, PEERS, SYSTEMS
from ansor.errors import ArgumentError
from ansor.frontend.storage import StoredModel, save_model
from ansor.tuned import TunedModel

ENTRY = ("-m", "ansor.compare.child")  # what a process runs
_TIMEOUT_S = 600.0  # one process; Inductor compiles for minutes on a busy machine
_SLOW_S = 1.0  # a network slower than this is not timed again in later rounds
_REFERENCES = ("torch", "untuned")  # whose output the others are compared with, if it is there


@dataclass(frozen=True)
class SystemResult:
    """One system's latencies, the median of each round in seconds, and its error.

    `difference` is the largest absolute difference from the reference's output, relative to the
    largest absolute value of that output.
    """

    system: str
    samples_s: tuple[float, ...]
    difference: float

    @property
    def latency_s(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.samples_s)


@dataclass(frozen=True)
class Comparison:
    """All systems that ran, in order; and why others did not."""

    results: tuple[SystemResult, ...]
    reference: str
    missing: dict[str, str] = field(default_factory=dict)


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
        save_model(StoredModel(model.baseline, model.compiled.target, {}), case.untuned)


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
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        tell(f"comparing, round {turn + 1} of {rounds}: {', '.join(samples)}")
        for name in [name for name in samples if not _settled(samples[name])]:
            try:
                samples[name].append(_run(case, name))
            except ChildError as error:
                if name == OWN[0]:  # an untuned network may take minutes for a run
                    raise
                missing[name] = str(error)
                del samples[name]
    return _judged(case, samples, missing)


def _settled(samples_s: Sequence[float]) -> bool:
    """Whether one round is enough: a run of seconds is its own average."""
    return bool(samples_s) and samples_s[0] > _SLOW_S


def _export(case: Case, names: list[str], missing: dict[str, str]) -> list[str]:
    """Writes the ONNX file; if that fails, whoever needs it is left out."""
    try:
        _start(case, EXPORT)
    except ChildError as error:
        missing |= {name: f"no ONNX file: {error}" for name in names if SYSTEMS[name].exported}
        return [name for name in names if name not in missing]
    return names


def _run(case: Case, system: str) -> float:
    _start(case, system)
    return float(json.loads(case.file(f"{system}.json").read_text())["latency_s"])


def _start(case: Case, what: str) -> None:
    """Runs a child to its end.

    Raises:
        ChildError: it fails or hangs; the last line of what it said.
    """
    run_child([*ENTRY, what, json.dumps(asdict(case))], case.threads, _TIMEOUT_S)


def _judged(case: Case, samples: dict[str, list[float]], missing: dict[str, str]) -> Comparison:
    outputs = {name: np.load(case.output(name)) for name in samples}
    reference = next((name for name in _REFERENCES if name in outputs), "ansor")
    expected = outputs[reference]
    scale = float(np.abs(expected).max())
    results = [
        SystemResult(name, tuple(times), float(np.abs(outputs[name] - expected).max()) / scale)
        for name, times in samples.items()
    ]
    return Comparison(tuple(results), reference, missing)
