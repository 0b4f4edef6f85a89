"""Peers of an operator, each in a separate process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from ansor.compare.system_process import Child, ChildError, run_child
from ansor.errors import ArgumentError
from benchmarks.operator_case import Case

ENTRY = ("-m", "benchmarks.operator_child")  # what a process runs
_TUNING = ("-m", "benchmarks.metaschedule_child")
_TIMEOUT_S = 7200.0  # MetaSchedule may tune for an hour
OURS = ("zero", "direct")
_NAMES = (*OURS, "torch", "metaschedule")
_PACKAGES = {  # beyond this package's own
    "torch": ("torch",),
    "torch_channels_last": ("torch",),
    "metaschedule": ("cloudpickle",),
}
_WITH_CHANNELS = ("C2D", "C3D", "GRP", "DIL", "DEP", "T2D", "CAP", "CBR", "OPE.6", "OPE.7")


@dataclass(frozen=True)
class Peers:
    """What `--peers` says.

    "zero" is our own mode without trials, "direct" our search without other algorithms.

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
            raise ArgumentError("peers", peer, f"give some of {', '.join(_NAMES)}[:TRIALS]")
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


def start(case: Case, system: str) -> Child:
    """Starts a system; see `benchmarks.operator_child`.

    Raises:
        ChildError: it is not installed.
    """
    arguments = [*ENTRY, system, json.dumps(asdict(case))]
    return Child(arguments, case.threads, _TIMEOUT_S, _first_path(case, system))


def tune_metaschedule(case: Case) -> dict[str, Any]:
    """Lets MetaSchedule tune in its own process; returns the notes on its search.

    Raises:
        ChildError: it fails, hangs or is not installed; the last line of its output.
    """
    system = "metaschedule"
    arguments = [*_TUNING, json.dumps(asdict(case))]
    run_child(arguments, case.threads, _TIMEOUT_S, _first_path(case, system))
    found: dict[str, Any] = json.loads(case.file(f"{system}.json").read_text(encoding="utf-8"))
    return found


def _first_path(case: Case, system: str) -> list[str]:
    missing = [name for name in _PACKAGES.get(system, ()) if find_spec(name) is None]
    if missing:
        raise ChildError(f"not installed: {', '.join(missing)}")
    return [_without_torch(case)] if system == "metaschedule" else []


def _without_torch(case: Case) -> str:
    """A folder that hides PyTorch from imports.

    TVM imports PyTorch if it is installed. MetaSchedule's workers then need longer to load TVM's
    intrinsics than the time limit of a build. On a GPU, where all intrinsics are loaded
    (`benchmarks.tensor_intrinsics`), every build times out.
    """
    folder = case.file("without_torch")
    folder.mkdir(exist_ok=True)
    (folder / "torch.py").write_text('raise ImportError("hidden")\n', encoding="utf-8")
    return str(folder)
