"""Runs on servers of TVM's RPC that die, hang and are restarted, and the gain from more servers."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

import ansor
from ansor.annotate.sample import sample
from ansor.config import FULL, MeasureConfig
from ansor.database.database import Database
from ansor.measure.rpc_device import RpcDevice
from ansor.program.program import Program
from ansor.run.prepare import prepare_network
from ansor.targets.registry import backend_of
from ansor.targets.target import resolve_target
from ansor.task import Task
from benchmarks.fault_scenarios.row import Case, Row, Scale
from benchmarks.fault_scenarios.small_run import operator
from benchmarks.rpc_farm import KEY, LIMITS, Farm

_SERVERS = 3
_LEAST_GAIN = 2.5
_WAIT_S = 0.8  # of a server for each program: the servers are slow, and this machine is idle
_CONFIG = MeasureConfig(run_timeout_s=3.0, min_time_s=0.005)
_BOUNDS = replace(LIMITS, upload_s=2.0)
_FAULTS_AFTER_S = 1.5


@dataclass(frozen=True)
class _Size:
    """Trials of the run with faults, and programs of the comparison."""

    trials: int
    programs: int


_SIZES: Mapping[Scale, _Size] = MappingProxyType(
    {Scale.QUICK: _Size(16, 12), Scale.FULL: _Size(96, 60)}
)


def run(scale: Scale) -> list[Row]:
    """Tunes on a farm with faults, and compares one server with three."""
    size = _SIZES[scale]
    with tempfile.TemporaryDirectory() as folder, Farm(Path(folder)) as farm:
        rows = _run_with_faults(farm, size.trials)
        farm.kill_servers()
        return [*rows, _throughput(farm, size.programs)]


def _device(farm: Farm) -> RpcDevice:
    return RpcDevice(farm.host, farm.port, KEY, threads=1, config=_CONFIG, limits=_BOUNDS)


def _run_with_faults(farm: Farm, trials: int) -> list[Row]:
    """A run in which one server is killed, one hangs, and one is restarted."""
    first = farm.serve(KEY)
    with _device(farm) as device, Database() as database:
        device.remote()  # measures the machine, on a server that does not wait
        pids = [farm.serve(KEY, _WAIT_S) for _ in range(_SERVERS)]
        farm.kill(first)
        case = Case("search", "of 3 servers one is killed, one hangs (SIGSTOP), one is restarted")
        with _faults(farm, pids):
            tuned = ansor.auto_schedule(operator(), trials=trials, database=database, device=device)
        (task,) = tuned.tasks
        found = database.all_records(device.target)
        records, kinds = len(found), Counter(each.measurement.error for each in found)
    assert tuned.finish is not None
    errors = sum(count for kind, count in kinds.items() if kind is not None)
    return [
        case.row(
            "the run ends with its last trial, and all trials are recorded",
            f"{tuned.finish.reason}; {task.trials} of {trials} trials, {records} records",
            tuned.finish.reason == "all trials spent" and task.trials == records == trials,
        ),
        case.row("no program fails", f"{errors} failures", errors == 0),
        case.row("the result is right", *_result(tuned)),
    ]


def _result(tuned: ansor.TunedModel) -> tuple[str, bool]:
    """The error of a tuned operator, and whether it is small."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    error = float(np.abs(tuned(a, b) - np.maximum(a @ b, 0)).max())
    return f"largest error {error:.1e}", error < 1e-3


@contextmanager
def _faults(farm: Farm, pids: Sequence[int]) -> Iterator[None]:
    """Injects the faults beside the block."""

    def inject() -> None:
        time.sleep(_FAULTS_AFTER_S)
        farm.kill(pids[0])
        farm.signal(pids[1], signal.SIGSTOP)
        farm.kill(pids[2])
        farm.serve(KEY, _WAIT_S)

    thread = threading.Thread(target=inject)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _throughput(farm: Farm, count: int) -> Row:
    """Programs per second with one server and with three."""
    case = Case("throughput", f"each program waits {_WAIT_S:g} s on its server")
    farm.serve(KEY, _WAIT_S)
    with _device(farm) as device:
        target = resolve_target("native")
        (task,) = prepare_network(operator(), target, device.target).tasks
        programs = _programs(task, device, count)
        device.measure(task, programs[:1], None)  # starts all processes
        alone = _rate(device, task, programs)
        for _ in range(_SERVERS - 1):
            farm.serve(KEY, _WAIT_S)
        together = _rate(device, task, programs)
    return case.row(
        f"{_SERVERS} servers measure at least {_LEAST_GAIN} times as many programs as one",
        f"{together:.2f} and {alone:.2f} programs per second: {together / alone:.2f} times",
        together >= _LEAST_GAIN * alone,
    )


def _rate(device: RpcDevice, task: Task, programs: Sequence[Program]) -> float:
    began_s = time.monotonic()
    results = device.measure(task, programs, None)
    assert not [result for result in results if result.error is not None]
    return len(programs) / (time.monotonic() - began_s)


def _programs(task: Task, device: RpcDevice, count: int) -> list[Program]:
    backend = backend_of(task.target)
    machine = backend.machine.read(resolve_target(task.target), device.threads)
    sketch = backend.search.sketches(task.dag, machine, FULL.sketch)[0]
    drawn = sample(sketch, count, np.random.default_rng(0))
    return [drawn.program(row) for row in range(count)]
