"""`ComputeDAG`: the stages of a compute definition and the buffers between them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from functools import cached_property

import networkx as nx

from ansor.dag.stage import Buffer, Stage


class ComputeDAG:
    """A read-only directed graph: nodes are stages, an edge carries the buffer that flows along it.

    Args:
        stages: in execution order.
        buffers: every buffer that a stage reads or writes, by name.
    """

    def __init__(self, stages: Iterable[Stage], buffers: dict[str, Buffer]) -> None:
        self.stages: dict[str, Stage] = {stage.name: stage for stage in stages}
        self.buffers = dict(buffers)
        self.graph: nx.DiGraph[str] = nx.freeze(self._build())

    def _build(self) -> nx.DiGraph[str]:
        graph: nx.DiGraph[str] = nx.DiGraph()
        writer = {w.buffer: s.name for s in self.stages.values() for w in s.writes}
        for stage in self.stages.values():
            graph.add_node(stage.name)
            for access in stage.reads:
                producer = writer.get(access.buffer)
                if producer is not None and producer != stage.name:
                    graph.add_edge(producer, stage.name, buffer=access.buffer)
        return graph

    def producers(self, name: str) -> tuple[str, ...]:
        """Stages whose output `name` reads."""
        return tuple(self.graph.predecessors(name))

    def consumers(self, name: str) -> tuple[str, ...]:
        """Stages that read the output of `name`."""
        return tuple(self.graph.successors(name))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Stage names, producers first; among equals, the order of definition."""
        position = {name: i for i, name in enumerate(self.stages)}
        return tuple(nx.lexicographical_topological_sort(self.graph, key=position.__getitem__))

    def is_output(self, name: str) -> bool:
        """Whether the stage writes a buffer that leaves the function."""
        return any(self.buffers[w.buffer].kind == "output" for w in self.stages[name].writes)

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(buffer.num_bytes for buffer in self.buffers.values())

    @cached_property
    def flops(self) -> int:
        """Floating-point operations of one run of the definition."""
        return sum(
            math.prod(axis.size for axis in stage.axes) * stage.ops.flops
            for stage in self.stages.values()
        )

    @cached_property
    def text(self) -> str:
        """Canonical text of the definition: the same on every platform and version."""
        return "\n".join(
            [_buffer_text(buffer) for buffer in self.buffers.values()]
            + [_stage_text(self.stages[name]) for name in self.order]
        )

    @cached_property
    def key(self) -> str:
        """Hash of `text`, 16 hex digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def show(self) -> str:
        """A readable list of the stages, with their domains, reads and FLOPs."""
        lines = [f"ComputeDAG {self.key}: {len(self.stages)} stages, {self.flops:,} FLOP"]
        for name in self.order:
            stage = self.stages[name]
            domain = " ".join(f"{a.name}{'~' if a.reduce else ''}={a.extent}" for a in stage.axes)
            reads = ", ".join(f"{r.buffer}[{', '.join(map(str, r.indices))}]" for r in stage.reads)
            lines.append(f"  {name}({domain}) <- {reads}")
        return "\n".join(lines)


def _buffer_text(buffer: Buffer) -> str:
    kind = "constant" if buffer.constant else buffer.kind
    range_ = "narrow " if buffer.narrow else ""
    return f"{kind} {range_}{buffer.dtype}{list(buffer.shape)}"


def _stage_text(stage: Stage) -> str:
    domain = ",".join(f"{'R' if axis.reduce else 'S'}{axis.extent}" for axis in stage.axes)
    return f"{stage.name}({domain}): {stage.body}"
