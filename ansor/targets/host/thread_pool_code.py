"""The native code of the thread pool (`ansor.targets.host.thread_pool`), as LLVM IR.

A worker has a slot. Its state is that of the task in it:

    IDLE ──▶ OFFERED ──▶ RUNNING ──▶ IDLE
      ▲         │           │          ▲
    ASLEEP      ▼           ▼          │
           taken back     AWAITED ─────┘

The launching thread offers one task to each worker, runs its own, and takes back tasks that no
worker has begun. So it only waits for running tasks. Both sides poll for a while (`IDLE_POLLS`,
`JOIN_POLLS`) and then sleep in the kernel (ASLEEP: a worker; AWAITED: the launching thread), until
the other side wakes them. This matters on a busy machine: a waiting thread leaves its core to other
work, and the scheduler then prefers it when there is work again.

A pool is in memory that `ansor.targets.host.thread_pool` provides (see `POOL_BYTES`). It has four
fields. Field `owner` is the launching thread or 0. Field `workers` is the number of slots with a
thread. Field `limit` is the number of tasks of a launch by the holder of the pool. Field `fail` is
the function that sets TVM's error.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from types import MappingProxyType

from ansor.targets.host.thread_pool_ir import IR

MAX_WORKERS = 255
SLOT_BYTES = 128  # two cache lines, which the processor fetches together
FIRST_SLOT_BYTES = 128
POOL_BYTES = FIRST_SLOT_BYTES + MAX_WORKERS * SLOT_BYTES
IDLE_POLLS = 20_000  # 0.3 ms to 1 ms: workers are awake for consecutive calls
JOIN_POLLS = 4_000  # pieces of work are much shorter
FUNCTIONS = ("use", "acquire", "release", "launch", "worker")
PREFIX = "ansor_pool_"  # of the functions' symbols

# Instruction that tells a core it polls, and the kernel's number of the system call futex.
_MACHINES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"x86_64": ("pause", 202), "aarch64": ("yield", 98)}
)

_STATES = {"IDLE": 0, "OFFERED": 1, "RUNNING": 2, "ASLEEP": 3, "AWAITED": 4}


def pool_ir(layout: str, machine: str | None = None) -> str:
    """The code for one architecture.

    Args:
        layout: LLVM's line of the architecture's data layout.
        machine: name of the architecture, such as "aarch64"; by default that of this machine.

    Raises:
        KeyError: an unknown architecture.
    """
    pause, futex = _MACHINES[machine or platform.machine()]
    table = ", ".join(f"ptr @{PREFIX}{name}" for name in FUNCTIONS)
    values: dict[str, object] = {
        "PAUSE": pause,
        "FUTEX": futex,
        "TABLE": table,
        "COUNT": len(FUNCTIONS),
        "IDLE_POLLS": IDLE_POLLS,
        "JOIN_POLLS": JOIN_POLLS,
        "MAX": MAX_WORKERS,
        **_STATES,
    }
    text = IR
    for name in sorted(values, key=len, reverse=True):  # no name is then part of a longer one
        text = text.replace(f"@{name}", str(values[name]))
    return f"{layout}\n{text}"
