"""Reads files of a server's machine and measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tvm.target import Target

from ansor.config import MeasureConfig
from ansor.errors import MeasureError
from ansor.measure.child.remote.machine import files_there, kernel_library, probe_there
from ansor.measure.remote_program import Library
from ansor.targets.cpu.probe import benchmark_kernels
from ansor.targets.cpu.probe.benchmark import Probe
from ansor.targets.cpu.probe.kept import ProbeError
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.cpu.vectors import vector_unit
from ansor.targets.target import target_text

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class ServerSystem:
    """See `ansor.targets.cpu.elsewhere.System`.

    Attributes:
        ask: calls a function with the session of a server and further arguments.
        target: text of the target.
        linker: see `ansor.targets.library.deployable`.
    """

    ask: Callable[..., object]
    target: str
    linker: str | None

    def files(self, paths: Sequence[str]) -> Mapping[str, str]:
        """The text of files; "" for one that cannot be read."""
        found = self.ask(files_there, self.target, self.linker, tuple(paths))
        return cast("Mapping[str, str]", found)

    def probe(self, spec: Spec) -> Probe:
        """Runs the micro-benchmark.

        Raises:
            ProbeError: it does not end.
        """
        try:
            return cast(Probe, self.ask(probe_there, spec, self.linker))
        except MeasureError as error:
            raise ProbeError(str(error)) from error


def known_work(target: Target, threads: int, config: MeasureConfig, linker: str | None) -> Library:
    """The reference of a server: multiply-adds on all threads."""
    lanes = vector_unit(target).bytes // _FLOAT_BYTES
    kernel = benchmark_kernels.fma(threads, lanes, config.core_rounds)
    return kernel_library(kernel, target_text(target, threads), linker)
