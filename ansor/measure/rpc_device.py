"""`RpcDevice`: measures on other machines, through the tracker and the servers of TVM's RPC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import cast

from tvm.target import Target

from ansor.config import RPC, MeasureConfig, RpcConfig
from ansor.errors import ArgumentError, MeasureError, UnsupportedError
from ansor.executor import R
from ansor.measure.call_plan import CallPlan
from ansor.measure.child.remote.machine import threads_there
from ansor.measure.definitions import Definitions
from ansor.measure.device import Device, OnResult, TaskProgram, ignored
from ansor.measure.local.share_out import share_out
from ansor.measure.local.worker_pool import Pool, new_fork_server
from ansor.measure.local.worker_process import WorkerFailure
from ansor.measure.remote_machine import RemoteMachine
from ansor.measure.remote_program import Library
from ansor.measure.result import InTurns, Measurement, Verification
from ansor.measure.rpc.batch import compare, measure_batch
from ansor.measure.rpc.checks import check_all
from ansor.measure.rpc.farm import Farm
from ansor.measure.rpc.system import ServerSystem, known_work
from ansor.measure.rpc.tracker import Tracker
from ansor.measure.tolerance import judged
from ansor.program.program import Program
from ansor.targets.registry import backend_of
from ansor.targets.target import NATIVE, resolve_target, target_text
from ansor.task import Task


class RpcDevice(Device):
    """A `Device` that builds here, in worker processes, and runs programs on all servers of a key.

    The servers of a key must be machines of one kind. Start the tracker with
    ``python -m tvm.exec.rpc_tracker`` and each server with ``python -m tvm.exec.rpc_server``. TVM's
    RPC has no authentication and no encryption: use it in trusted networks only.

    Args:
        host: of the tracker.
        port: of the tracker.
        key: of the servers.
        target: of the servers, as `auto_schedule` takes it; "native" if they are like this machine.
        threads: of the programs; by default all cores of a server.
        linker: command that links shared libraries for the servers, such as
            "riscv64-linux-gnu-g++". By default the linker of this package links for x86-64 and
            AArch64, and the servers link for other processors.
        config: of the measurements.
        limits: of time.

    Raises:
        ArgumentError: the tracker knows no server of the key, or another argument is wrong.
        MeasureError: there is no tracker. From any method: no server opens a session in time; the
            message has the queues of the tracker.
        UnsupportedError: the target is no CPU.
    """

    def __init__(
        self,
        host: str,
        port: int,
        key: str,
        target: str | Target = NATIVE,
        threads: int | None = None,
        *,
        linker: str | None = None,
        config: MeasureConfig | None = None,
        limits: RpcConfig = RPC,
    ) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError("threads", threads, "must be at least 1")
        self._resolved = resolve_target(target)
        self._backend = backend_of(self._resolved)
        if self._backend.machine.elsewhere is None:
            problem = f"target {self._resolved}: {self._backend.title} behind RPC cannot be used"
            raise UnsupportedError(problem, "tune on that machine")
        tracker = Tracker(host, port, limits)
        if not tracker.servers(key):
            raise ArgumentError(
                "key", key, f"no server has it: {tracker.text()}; start one, or give another key"
            )
        self._config, self._asked = config or MeasureConfig(), threads
        self._fork_server = new_fork_server(self._backend)
        self._farm = Farm(
            tracker,
            key,
            threads or 0,
            self._config,
            self._backend,
            self._fork_server,
            linker,
            lambda: self._watch,
        )
        self._is_open, self._learns = True, False

    @cached_property
    def threads(self) -> int:
        """Threads of the programs."""
        if self._asked is None:
            self._farm.threads = cast(int, self._unwatched(threads_there))
        return self._farm.threads

    @cached_property
    def target(self) -> str:
        """Text of the target that every task must have."""
        return target_text(self._resolved, self.threads)

    def remote(self) -> RemoteMachine:
        """See `Device.remote`; the machine is measured once, which takes some ten seconds."""
        return self._machine

    @cached_property
    def _machine(self) -> RemoteMachine:
        detect = self._backend.machine.elsewhere
        assert detect is not None
        system = ServerSystem(self._unwatched, self.target, self._farm.linker)
        parameters = detect(self._resolved, self.threads, system)
        return RemoteMachine(self.target, self.threads, parameters)

    def _unwatched(self, function: Callable[..., object], *arguments: object) -> object:
        """The result of a function on a server, without a watch for disturbances."""
        with self._clean_up():
            self._learns = True
            try:
                return self._farm.ask(function, *arguments)
            finally:
                self._learns = False

    @cached_property
    def _known_work(self) -> Library:
        return known_work(self._resolved, self.threads, self._config, self._farm.linker)

    @property
    def _watch(self) -> Library | None:
        return None if self._learns else self._known_work

    @cached_property
    def _definitions(self) -> Definitions:
        return Definitions(self.target)

    @cached_property
    def _pool(self) -> Pool:
        """Processes that build."""
        return Pool(
            self.threads, self._config, self._backend, here=False, fork_server=self._fork_server
        )

    def start(self, count: int | None = None) -> None:
        """See `Device.start`; processes start here."""
        self._fork_server.start()
        if self._asked is not None:  # only a server knows the number of threads
            self._pool.start(count)

    def share(self, function: Callable[..., R], arguments: Sequence[tuple[object, ...]]) -> list[R]:
        """See `Device.share`; the processes that build do it."""
        with self._clean_up():
            return share_out(self._pool, function, arguments)

    def measure(
        self,
        task: Task,
        programs: Sequence[Program],
        best_s: float | None,
        on_result: OnResult = ignored,
    ) -> list[Measurement]:
        """See `Device.measure`."""
        with self._clean_up():
            define = self._definitions.of(task)
            return measure_batch(self._pool, self._farm, define, programs, best_s, on_result)

    def verify(self, candidates: Sequence[TaskProgram]) -> list[Verification]:
        """See `Device.verify`; the references are computed here."""
        named = [(self._definitions.of(task), program) for task, program in candidates]
        with self._clean_up():
            outcomes = check_all(self._pool, self._farm, named)
        found = []
        for (task, _), outcome in zip(candidates, outcomes, strict=True):
            if isinstance(outcome, WorkerFailure):
                found.append(Verification(error=outcome.kind, message=outcome.message))
            elif outcome.error is not None:
                found.append(Verification(error=outcome.error, message=outcome.message))
            else:
                difference = cast(float, outcome.value)
                found.append(judged(task, difference, self._config, self._backend))
        return found

    def compare(self, task: Task, programs: Sequence[Program], rounds: int) -> list[float | None]:
        """See `Device.compare`; all on one server."""
        found = self.compare_turns(task, programs, rounds)
        return [None if turns is None else turns.latency_s for turns in found]

    def compare_turns(
        self, task: Task, programs: Sequence[Program], rounds: int
    ) -> list[InTurns | None]:
        """See `Device.compare_turns`; all on one server."""
        named = [(self._definitions.of(task), program) for program in programs]
        with self._clean_up():
            return compare(self._pool, self._farm, [named], rounds)[0] if named else []

    def rehearse(
        self, plan: CallPlan, candidates: Mapping[str, Sequence[TaskProgram]], seconds: float
    ) -> dict[str, list[float | None]]:
        """See `Device.rehearse`. Programs of a function are timed in turns on one server, not in
        the run of the network."""
        calls = Counter(call.function for call in plan.calls)
        groups = [[(self._definitions.of(t), p) for t, p in own] for own in candidates.values()]
        with self._clean_up():
            times = compare(self._pool, self._farm, groups, self._config.network_rounds)
        return {
            name: [None if turns is None else turns.latency_s * calls[name] for turns in own]
            for name, own in zip(candidates, times, strict=True)
        }

    @contextmanager
    def _clean_up(self) -> Iterator[None]:
        """Kills busy workers after an exception, such as an interrupt."""
        if not self._is_open:
            raise MeasureError("the device is closed", "open a new one")
        try:
            yield
        except BaseException:
            if "_pool" in vars(self):
                self._pool.kill_busy()
            raise

    def close(self) -> None:
        """See `Device.close`."""
        self._is_open = False
        if "_pool" in vars(self):
            self._pool.close()
        self._fork_server.kill()
