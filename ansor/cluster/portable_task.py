"""A task in a form that is sent to a node once. Programs follow as steps and integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import tvm
from tvm import tirx

from ansor.dag.graph import ComputeDAG
from ansor.measure.pickled_schedule import pickled, unpickled
from ansor.task import Converted, Original, Task


@dataclass(frozen=True)
class PortableOriginal:
    """See `Original`; the function is TVM's JSON."""

    name: str
    kind: str
    func_json: str
    converted: Converted | None


@dataclass(frozen=True)
class PortableTask:
    """See `Task`; the function is TVM's JSON, and a schedule of a user is pickled."""

    key: str
    name: str
    func_json: str
    dag: ComputeDAG
    target: str
    in_network: bool
    original: PortableOriginal | None
    by_hand: bytes | None

    def task(self) -> Task:
        """The task in this process."""
        original = None
        if self.original is not None:
            own = self.original
            original = Original(own.name, own.kind, _function(own.func_json), own.converted)
        return Task(
            self.name,
            _function(self.func_json),
            self.dag,
            self.target,
            in_network=self.in_network,
            original=original,
            by_hand=None if self.by_hand is None else unpickled(self.by_hand),
        )


def portable(task: Task) -> PortableTask:
    """A task in its form for nodes.

    Raises:
        ArgumentError: a schedule of a user refers to a value that cannot be sent to another
            process.
    """
    original = None
    if task.original is not None:
        own = task.original
        original = PortableOriginal(own.name, own.kind, _json(own.func), own.converted)
    return PortableTask(
        task.key,
        task.name,
        _json(task.func),
        task.dag,
        task.target,
        task.in_network,
        original,
        None if task.by_hand is None else pickled(task.by_hand),
    )


def _json(func: tirx.PrimFunc) -> str:
    return str(tvm.ir.save_json(func))


def _function(text: str) -> tirx.PrimFunc:
    return cast(tirx.PrimFunc, tvm.ir.load_json(text))
