"""A session with one server of TVM's RPC.

A server that hangs blocks its client in native code. Therefore only worker processes open sessions,
because they can be killed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import rpc

from ansor.config import MeasureConfig
from ansor.measure.child.timing_conditions import Conditions, Sentinel
from ansor.measure.function_arguments import num_bytes, on_device, random_arrays
from ansor.measure.protocol import Connect
from ansor.measure.remote_program import Library
from ansor.targets.build import ENTRY

_BIG_CORES = 1  # TVM's ThreadGroup::AffinityMode: the fastest cores first


class ServerError(Exception):
    """A server cannot run the compiled programs."""


class RemoteSession:
    """Loads and runs libraries on a server.

    Args:
        request: names the server.
        config: of the measurements.

    Attributes:
        device: the CPU of the server.
        conditions: test whether the server is disturbed.

    Raises:
        Exception: of many kinds, from TVM, if the server does not open the session.
    """

    def __init__(self, request: Connect, config: MeasureConfig) -> None:
        server = request.server
        self._session: Any = rpc.connect(
            server.host, server.port, server.match_key, session_timeout=request.seconds
        )
        self._config = config
        self._names = itertools.count()
        self._arrays: tuple[object, list[Any]] = (None, [])
        self.device = self._session.cpu(0)
        self._use_threads(request.threads)
        watch = request.watch
        self.conditions = Conditions(() if watch is None else (self._sentinel(watch),))

    def _use_threads(self, threads: int) -> None:
        self.function("runtime.config_threadpool")(_BIG_CORES, threads)
        most = int(self.function("runtime.NumThreads")())
        if most < threads:
            raise ServerError(f"the server runs programs on {most} threads, not on {threads}")

    def function(self, name: str) -> Any:
        """A global function of the server."""
        return self._session.get_function(name)

    def is_alive(self) -> bool:
        """Whether the server still answers."""
        try:
            self.function("runtime.NumThreads")()
        except Exception:  # of TVM, of many kinds
            return False
        return True

    def load(self, library: Library) -> Any:
        """The module of a library, on the server."""
        name = f"program{next(self._names)}.{library.suffix}"
        self._session.upload(bytearray(library.code), name)
        return self._session.load_module(name)

    def arguments(self, library: Library) -> list[Any]:
        """Random arguments on the server, kept for the next library with equal parameters."""
        known, arrays = self._arrays
        if known != library.params:
            self._arrays = (None, [])  # frees their memory first
            arrays = on_device(random_arrays(library, self._config, low=-1.0), self.device)
            self._arrays = (library.params, arrays)
        return arrays

    def seconds(
        self, module: Any, arguments: Sequence[Any], number: int, repeat: int = 1, before: str = ""
    ) -> list[float]:
        """Mean seconds of `number` runs, `repeat` times, on the clock of the server.

        Args:
            before: name of a function of the server that gets the arguments before each repeat.
        """
        evaluator = module.time_evaluator(
            ENTRY, self.device, number=number, repeat=repeat, f_preproc=before
        )
        return [float(seconds) for seconds in evaluator(*arguments).results]

    def _sentinel(self, library: Library) -> Sentinel:
        """A test whether the cores of the server run at full speed."""
        module = self.load(library)
        arrays = on_device(random_arrays(library, self._config, low=0.0), self.device)
        return Sentinel(
            lambda: self.seconds(module, arrays, 1)[0],
            self._config.quiet_factor,
            first_runs=self._config.watch_runs,
        )


def array_bytes(library: Library) -> int:
    """Bytes of the arguments of a library."""
    return sum(map(num_bytes, library.params))


def is_session_timeout(error: BaseException) -> bool:
    """Whether the server has ended a session because it took too long."""
    return isinstance(error, tvm.error.RPCSessionTimeoutError)
