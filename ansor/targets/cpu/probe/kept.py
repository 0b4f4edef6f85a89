"""The micro-benchmark's results: measured once per machine, kept in the user's cache."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import platformdirs

from ansor.parent_death import ending_with_this
from ansor.targets.cpu.probe.benchmark import REVISION, Probe
from ansor.targets.cpu.probe.meter import Spec
from ansor.targets.host.memory import PLAIN_PAGES
from ansor.targets.host.threads import module_path, pool_variables

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 60.0  # a probe takes 5 to 10 s, and longer beside other work
_CPUINFO = Path("/proc/cpuinfo")

Run = Callable[[Spec], Probe]


class ProbeError(Exception):
    """The micro-benchmark did not finish."""


def cache_file() -> Path:
    """The file of results."""
    return Path(platformdirs.user_cache_dir("ansor")) / "hardware.json"


def measured(
    spec: Spec,
    *,
    run: Run | None = None,
    file: Path | None = None,
    fresh: bool = False,
    processor: str | None = None,
) -> Probe | None:
    """Results of the micro-benchmark of a machine; None, with a warning, if it fails.

    Args:
        spec: what to measure.
        run: runs the measurement; by default a separate process.
        file: of the results; by default in the user's cache directory.
        fresh: measure even if there is a result; the better figures of both are then kept.
        processor: name of the machine's processor; by default that of this machine.
    """
    run, file = run or run_probe, file or cache_file()
    kept, key = _read(file), key_of(spec, processor)
    found = _decode(kept.get(key))
    if found is not None and not fresh:
        return found
    try:
        result = run(spec)
    except ProbeError as error:
        _LOG.warning("cannot measure this machine, default figures are used: %s", error)
        return None
    if result.was_disturbed(spec.threads):
        _LOG.warning("other work ran while this machine was measured; it will be measured again")
        return result
    best = result if found is None else result.at_best(found)
    _write(file, {**kept, key: dataclasses.asdict(best)})
    return result


def run_probe(spec: Spec) -> Probe:
    """Measures in a process with the number of threads of `spec`.

    Raises:
        ProbeError: the process fails or hangs, or its output is malformed.
    """
    text = json.dumps(dataclasses.asdict(spec))
    environment = {
        **os.environ,
        **pool_variables(spec.threads),
        **PLAIN_PAGES,
        **module_path(),
    }
    command = ending_with_this([sys.executable, "-m", "ansor.targets.cpu.probe", text])
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        raise ProbeError(f"exit status {error.returncode}: {' '.join(last)}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProbeError(str(error)) from error
    found = _decode(_parsed(done.stdout.strip().splitlines()[-1:]))
    if found is None:
        raise ProbeError(f"unexpected output {done.stdout[:200]!r}")
    return found


def key_of(spec: Spec, processor: str | None = None) -> str:
    """All parameters that a result depends on, as text; by default for this machine's processor."""
    parts = dataclasses.asdict(spec)
    parts |= {
        "processor": processor or processor_name(),
        "tvm": version("apache-tvm"),
        "probe": REVISION,
    }
    return json.dumps(parts, sort_keys=True)


def processor_name() -> str:
    """The system's name of the processor."""
    try:
        name = named_processor(_CPUINFO.read_text())
    except OSError:
        name = ""
    return name or platform.processor() or platform.machine()


def named_processor(cpuinfo: str) -> str:
    """The name in the text of Linux' /proc/cpuinfo; "" if there is none, as on Arm."""
    lines = cpuinfo.splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else ""


def _parsed(lines: list[str]) -> object:
    try:
        return json.loads(lines[0]) if lines else None
    except ValueError:
        return None


def _decode(document: object) -> Probe | None:
    """A result from its JSON form; None if it is not one."""
    if not isinstance(document, dict):
        return None
    try:
        level2, last, memory = map(float, document["stream_bytes"])
        short, long = map(float, document["chain_s"])
        rest = {key: float(document[key]) for key in _SCALARS}
        rates = tuple((str(name), float(rate)) for name, rate in document["instructions"])
    except (KeyError, TypeError, ValueError):
        return None
    return Probe(
        stream_bytes=(level2, last, memory), chain_s=(short, long), instructions=rates, **rest
    )


_SCALARS = ("peak_flops", "core_flops", "half_flops", "product_flops", "parallel_overhead_s")


def _read(file: Path) -> dict[str, object]:
    """All kept results; none if the file is missing or broken."""
    try:
        document = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write(file: Path, results: dict[str, object]) -> None:
    """Replaces the file as a whole. A machine without a cache directory measures each time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(results, indent=1, sort_keys=True))
        temporary.replace(file)
    except OSError as error:
        _LOG.warning("cannot keep what was measured of this machine: %s", error)
