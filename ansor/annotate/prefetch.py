"""The prefetches of a structure for a CPU: one decision, and the prefetches that always apply.

Deviation: Ansor does not prefetch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ansor.config import SketchConfig
from ansor.dag.graph import ComputeDAG
from ansor.program.decision import Decision, category
from ansor.program.steps import (
    CacheRead,
    FuseConsumer,
    MultiLevelTile,
    Prefetch,
    PrefetchConsumer,
    PrefetchOperands,
    PrefetchPackedRows,
    Step,
)
from ansor.targets.cpu.machine import Hardware


class Prefetches:
    """Makes the steps that prefetch.

    Args:
        dag: the graph after the structural steps.
        hardware: sizes of caches and lines.
        config: shares of the caches.
    """

    def __init__(self, dag: ComputeDAG, hardware: Hardware, config: SketchConfig) -> None:
        self._dag, self._hardware, self._config = dag, hardware, config

    def of_constant(self, name: str) -> tuple[Prefetch, Decision] | None:
        """A decision to prefetch the largest constant that a tiled reduction reads."""
        stage, config = self._dag.stages[name], self._config
        read = [self._dag.buffers[access.buffer] for access in stage.reads if stage.reduce]
        constants = [b for b in read if b.constant]
        buffer = max(constants, key=lambda b: b.num_bytes, default=None)
        if buffer is None or buffer.num_bytes < config.min_prefetch_bytes:
            return None
        most = int(config.max_prefetch_share * self._hardware.cache_bytes[1])
        sizes = (config.min_prefetch_part, most, config.min_prefetch_run, config.prefetch_distance)
        least, most, run, distance = (size // buffer.item_bytes for size in sizes)
        hole = category(f"{name}.prefetch", name, (0, 1))
        line_bytes = self._hardware.line_bytes
        step = Prefetch(name, buffer.name, (least, most), run, distance, line_bytes, hole.name)
        return step, hole

    def always(self, steps: Sequence[Step]) -> list[Step]:
        """The prefetches of packed rows, of tiled operands and of fused consumers."""
        line_bytes = self._hardware.line_bytes
        decided = {(s.stage, s.buffer) for s in steps if isinstance(s, Prefetch)}
        found: list[Step] = []
        for step in steps:
            if isinstance(step, CacheRead):
                found.append(PrefetchPackedRows(step.copy, line_bytes))
            elif isinstance(step, MultiLevelTile):
                found += self._operands(step.stage, decided)
            elif isinstance(step, FuseConsumer):
                found.append(self._consumer(step))
        return found

    def _operands(self, name: str, decided: Collection[tuple[str, str]]) -> list[Step]:
        """The large parameters of a tiled stage, unless their prefetch is a decision."""
        level2 = self._hardware.cache_bytes[1]
        stage = self._dag.stages[name]
        touched = dict.fromkeys([*(access.buffer for access in stage.reads), stage.output])
        large = tuple(
            buffer
            for buffer in touched
            if self._dag.buffers[buffer].kind != "intermediate"
            and self._dag.buffers[buffer].num_bytes >= level2
            and (name, buffer) not in decided
        )
        if not large:
            return []
        tile_bytes = int(self._config.operand_tile_share * level2)
        return [PrefetchOperands(name, large, tile_bytes, level2, self._hardware.line_bytes)]

    def _consumer(self, step: FuseConsumer) -> Step:
        level1, level2, _ = self._hardware.cache_bytes
        tile_bytes = round(self._config.consumer_tile_share * level1)
        line_bytes = self._hardware.line_bytes
        return PrefetchConsumer(step.stage, step.consumer, tile_bytes, level2, line_bytes)
