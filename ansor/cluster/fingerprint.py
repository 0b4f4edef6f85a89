"""Whether two machines are equal, so that their measurements may be compared."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.targets.cpu.caches import read_caches
from ansor.targets.cpu.features import features_here
from ansor.targets.cpu.probe.kept import processor_name
from ansor.targets.host.threads import available_cores
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target


@dataclass(frozen=True)
class Fingerprint:
    """The hardware of a machine.

    Attributes:
        processor: the system's name.
        features: instruction sets, by LLVM's names.
        cores: that a process may use.
        cache_bytes: first, second and last level; none if the system does not say.
        device: parameters of the target's machine that need no measurement; for a GPU its product
            and its memory.
    """

    processor: str
    features: frozenset[str]
    cores: int
    cache_bytes: tuple[int, ...]
    device: str

    def __str__(self) -> str:
        return f"{self.processor}, {self.cores} cores"


def fingerprint_here(target: str, threads: int) -> Fingerprint:
    """The fingerprint of this machine.

    Args:
        target: text of the TVM target.
        threads: of a kernel.
    """
    resolved, caches = resolve_target(target), read_caches()
    return Fingerprint(
        processor=processor_name(),
        features=features_here(),
        cores=available_cores(),
        cache_bytes=() if caches is None else tuple(caches.sizes),
        device=repr(backend_of(resolved).machine.read(resolved, threads)),
    )
