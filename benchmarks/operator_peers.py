"""Which systems an operator is compared with, and how each is run in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from ansor.compare.process import ChildError, run_child
from ansor.errors import ArgumentError
from benchmarks.operator_case import Case

ENTRY = ("-m", "benchmarks.operator_child")  # what a process runs
_TIMEOUT_S = 7200.0  # MetaSchedule may tune for an hour
_NAMES = ("zero", "torch", "metaschedule")
_PACKAGES = {  # beyond this package's own
    "torch": ("torch",),
    "torch_channels_last": ("torch",),
    "metaschedule": ("cloudpickle",),
}
_WITH_CHANNELS = ("C2D", "C3D", "GRP", "DIL", "DEP", "T2D", "CAP", "CBR", "OPE.6", "OPE.7")


@dataclass(frozen=True)
class Peers:
    """What `--peers` says; "zero" is our own mode without trials.

    Attributes:
        names: in the order given.
        trials: of MetaSchedule.
    """

    names: tuple[str, ...] = ()
    trials: int = 128


def parse_peers(text: str) -> Peers:
    """Reads "torch,metaschedule:128".

    Raises:
        ArgumentError: an unknown peer, or trials that are no positive integer.
    """
    names, trials = [], Peers.trials
    for peer in filter(None, text.split(",")):
        name, colon, count = peer.partition(":")
        if name not in _NAMES or (colon and name != "metaschedule"):
            raise ArgumentError("peers", peer, f"peers are {', '.join(_NAMES)}[:TRIALS]")
        if colon:
            if not count.isdecimal() or int(count) < 1:
                raise ArgumentError("peers", peer, "say metaschedule:TRIALS, as in metaschedule:64")
            trials = int(count)
        names.append(name)
    return Peers(tuple(names), trials)


def systems_for(op: str, peers: Peers) -> list[str]:
    """The systems that apply to an operator; channels last only where there are channels."""
    found = []
    for name in peers.names:
        found.append(name)
        if name == "torch" and (op in _WITH_CHANNELS or op.partition(".")[0] in _WITH_CHANNELS):
            found.append("torch_channels_last")
    return found


def start(case: Case, system: str) -> dict[str, Any]:
    """Runs a system once, to its end; returns "latency_s" and what else it tells.

    Raises:
        ChildError: it fails, hangs or is not installed; the last line of what it said.
    """
    return run_system(case, system, (*ENTRY, system))


def run_system(case: Case, system: str, entry: Sequence[str]) -> dict[str, Any]:
    """Runs Python with the arguments `entry` and the case; returns what it leaves in the case's
    folder as "SYSTEM.json".

    Raises:
        ChildError: it fails, hangs or is not installed; the last line of what it said.
    """
    missing = [name for name in _PACKAGES.get(system, ()) if find_spec(name) is None]
    if missing:
        raise ChildError(f"not installed: {', '.join(missing)}")
    first = [_without_torch(case)] if system == "metaschedule" else []
    run_child([*entry, json.dumps(asdict(case))], case.threads, _TIMEOUT_S, first)
    found: dict[str, Any] = json.loads(case.file(f"{system}.json").read_text(encoding="utf-8"))
    return found


def _without_torch(case: Case) -> str:
    """A folder that hides PyTorch from imports.

    TVM imports PyTorch where it can, and with so many modules loaded MetaSchedule's workers need
    longer to load TVM's intrinsics than they are given to build a program: every build times out.
    """
    folder = case.file("without_torch")
    folder.mkdir(exist_ok=True)
    (folder / "torch.py").write_text('raise ImportError("hidden")\n', encoding="utf-8")
    return str(folder)
