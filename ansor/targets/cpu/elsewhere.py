"""Fills in a `Hardware` for another machine that provides its files and runs kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tvm.target import Target

from ansor.targets.cpu.caches import SYSTEM, Caches, read_caches
from ansor.targets.cpu.detect import described, spec_of, with_probe
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.probe.benchmark import Probe
from ansor.targets.cpu.probe.kept import measured, named_processor
from ansor.targets.cpu.probe.meter import Spec

_CPUINFO = "/proc/cpuinfo"
_CACHES = 5  # most caches of a core in Linux: three levels, up to two of them in halves
_FIELDS = ("level", "type", "size", "coherency_line_size")


class System(Protocol):
    """Another machine."""

    def files(self, paths: Sequence[str]) -> Mapping[str, str]:
        """The text of files; "" for one that cannot be read."""

    def probe(self, spec: Spec) -> Probe:
        """Runs the micro-benchmark.

        Raises:
            ProbeError: it does not end.
        """


@dataclass(frozen=True)
class _Described:
    name: str
    caches: Caches | None


def detect_elsewhere(target: Target, threads: int, system: System) -> Hardware:
    """The parameters of another machine; see `ansor.targets.cpu.detect.detect`.

    Measurements are kept in the user's cache, by the name of the processor.
    """
    found = _read(system)
    name = found.name or str(target.attrs.get("mcpu", "")) or str(target.kind.name)
    hardware = described(target, threads, name, found.caches)
    probe = measured(spec_of(target, hardware), run=system.probe, processor=name)
    return hardware if probe is None else with_probe(hardware, probe)


def _read(system: System) -> _Described:
    """The name and the caches of a processor, from its system's files."""
    names = [f"index{number}/{field}" for number in range(_CACHES) for field in _FIELDS]
    texts = system.files([_CPUINFO, *(f"{SYSTEM}/{name}" for name in names)])
    with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
        for name in names:
            copy = Path(folder, name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(texts[f"{SYSTEM}/{name}"])
        return _Described(named_processor(texts[_CPUINFO]), read_caches(Path(folder)))
