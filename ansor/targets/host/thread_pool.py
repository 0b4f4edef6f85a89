"""One pool of threads for all parallel loops of this process.

TVM's pools (one for each calling thread) never grow, and do not exist in a forked child. They wait
until every thread is scheduled. Beside one busy process a network takes many times its latency,
because each of its loops waits for a core with other work. Modules that are loaded after `start`
use this pool instead. Its caller never waits for a task that has not begun (`pool_code`).

One thread at a time has the pool. Other callers run their loops alone, which is no slower than
taking turns.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tvm
import tvm_ffi.libinfo
from tvm import tirx
from tvm.target import codegen

from ansor.targets.host.memory import plain_block
from ansor.targets.host.thread_pool_code import (
    FIRST_SLOT_BYTES,
    FUNCTIONS,
    MAX_WORKERS,
    POOL_BYTES,
    SLOT_BYTES,
    pool_ir,
)

_LAUNCH = b"__TVMBackendParallelLaunch"  # the pointer that TVM's code calls through
_ALL_SIGNALS = signal.valid_signals()
_changing = threading.Lock()  # held while threads are added


@dataclass(frozen=True)
class _Native:
    """The functions of `pool_code` for Python; `worker` is an address."""

    use: Callable[[int], None]
    acquire: Callable[[int], int]
    release: Callable[[], None]
    worker: int
    fail: int


@cache
def _native() -> _Native:
    """Compiles the pool's code, and lets modules that TVM loads later call it."""
    path = f"/proc/self/fd/{_in_memory(pool_ir(_data_layout()))}"
    module = tvm.get_global_func("ffi.Module.load_from_file.ll")(path, "ll")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))  # threads run it until the process ends
    address = {name: int(module["address"](i)) for i, name in enumerate(FUNCTIONS)}
    ffi = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
    if ffi.TVMFFIEnvModRegisterContextSymbol(_LAUNCH, ctypes.c_void_p(address["launch"])):
        raise RuntimeError("TVM does not take another function for parallel loops")
    fail = ctypes.cast(ffi.TVMFFIErrorSetRaisedFromCStr, ctypes.c_void_p).value
    return _Native(
        use=ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address["use"]),
        acquire=ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(address["acquire"]),
        release=ctypes.PYFUNCTYPE(None)(address["release"]),
        worker=address["worker"],
        fail=fail or 0,
    )


def _in_memory(text: str) -> int:
    """A file in memory only; never closed, because it is read once in a process."""
    descriptor = os.memfd_create("pool")
    os.write(descriptor, text.encode())
    return descriptor


def _data_layout() -> str:
    """LLVM's data layout of this machine, from TVM."""
    nothing = tirx.PrimFunc([], tirx.Evaluate(tirx.const(0, "int32")))
    module = tvm.IRModule({"nothing": nothing.with_attr("global_symbol", "nothing")})
    text: str = codegen.build_module(module, tvm.target.Target("llvm")).inspect_source("ll")
    return next(line for line in text.splitlines() if line.startswith("target datalayout"))


@dataclass(eq=False)
class _Pool:
    """Memory of a pool, and the cores of its workers: the i-th worker runs on the i-th core."""

    memory: Any = field(default_factory=lambda: plain_block(POOL_BYTES))
    cores: list[int | None] = field(default_factory=list)

    @property
    def address(self) -> int:
        """Address of the memory."""
        return int(self.memory.ctypes.data)

    def set(self, offset: int, kind: Any, value: int) -> None:
        """Writes a field."""
        kind.from_address(self.address + offset).value = value

    def add_worker(self, worker: int, core: int | None) -> None:
        """Starts a thread, bound to a core, if one is given.

        Raises:
            OSError: the system allows no further thread.
        """
        number = len(self.cores)
        slot = FIRST_SLOT_BYTES + number * SLOT_BYTES
        self.set(slot + 4, ctypes.c_int32, number + 1)
        self.set(slot + 8, ctypes.c_void_p, self.address)
        _start_thread(worker, self.address + slot, core)
        self.cores.append(core)
        self.set(8, ctypes.c_int32, len(self.cores))


def _start_thread(function: int, argument: int, core: int | None) -> None:
    """Starts a native thread that receives no signals."""
    libc = ctypes.CDLL(None)
    handle = ctypes.c_ulong()
    before = os.sched_getaffinity(0)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
    try:  # a thread inherits the signal mask and the cores of its creator
        if core is not None:
            os.sched_setaffinity(0, {core})
        start = (ctypes.c_void_p(function), ctypes.c_void_p(argument))
        status = libc.pthread_create(ctypes.byref(handle), None, *start)
    finally:
        os.sched_setaffinity(0, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if status:
        raise OSError(status, f"cannot start a thread: {os.strerror(status)}")
    libc.pthread_detach(handle)


_current: _Pool | None = None


def start(threads: int, cores: Collection[int]) -> None:
    """Starts threads until `count` threads can run a loop, with the calling one.

    Args:
        cores: one for each thread, the first for the calling one. Existing threads keep theirs.
            Threads without a core are not bound.

    Raises:
        OSError: the system allows no further thread.
    """
    global _current
    with _changing:
        native = _native()
        if _current is None:
            pool = _Pool()
            pool.set(16, ctypes.c_void_p, native.fail)
            native.use(pool.address)
            _current = pool
        places = [*cores, *[None] * threads]
        for number in range(len(_current.cores) + 1, min(threads, MAX_WORKERS + 1)):
            _current.add_worker(native.worker, places[number])


def prepare() -> None:
    """Compiles the code for `start`, in a few hundredths of a second; starts no thread."""
    _native()


def num_threads() -> int:
    """Threads that can run a loop; none before `start`."""
    return 0 if _current is None else len(_current.cores) + 1


def cores_of_workers(threads: int) -> frozenset[int]:
    """Cores of the workers that help the calling thread in a loop."""
    cores = [] if _current is None else _current.cores[: threads - 1]
    return frozenset(core for core in cores if core is not None)


@contextmanager
def holding(threads: int) -> Iterator[bool]:
    """Lets the loops of the calling thread run on `threads` threads, and yields True. If another
    thread has the pool, it yields False, and the loops run on the calling thread alone. `start`
    must have been called."""
    native = _native()
    held = bool(native.acquire(threads))
    try:
        yield held
    finally:
        if held:
            native.release()


def _after_fork() -> None:
    """Resets the pool in a forked child, which has no workers."""
    global _current, _changing
    _changing = threading.Lock()
    if _current is not None:
        parents, _current = _current, None
        start(1, ())
        del parents


os.register_at_fork(after_in_child=_after_fork)
