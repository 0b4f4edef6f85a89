"""Stages that may be computed inside another stage's loops, and their possible places."""

from __future__ import annotations

from functools import cached_property

from ansor.dag.graph import ComputeDAG
from ansor.dag.index import in_blocks
from ansor.dag.stage import Access, Stage
from ansor.program.loop_structure import enclosing_loops, num_leading
from ansor.program.roles import Roles, root_of
from ansor.program.steps import MultiLevelTile


class Locations:
    """Hosts of the stages that have no nest of their own and are no outputs.

    A stage may be attached below the loops of a root stage if this root is or hosts each of its
    consumers. All of them must read the stage by affine indices. Indices that move in blocks are
    enough for a consumer with its own nest.
    """

    def __init__(self, dag: ComputeDAG, roles: Roles) -> None:
        self.dag, self.roles = dag, roles
        self.tiled = frozenset(
            name for name, shape in roles.shape.items() if isinstance(shape, MultiLevelTile)
        )

    @cached_property
    def host(self) -> dict[str, str]:
        """Attached stage to its host: fused consumers, and all stages with a choice of location."""
        hosts = {name: step.stage for name, step in self.roles.fused.items()}
        for name in reversed(self.dag.order):
            host = self._host_of(name, hosts)
            if host is not None:
                hosts[name] = host
        return hosts

    @property
    def order(self) -> list[str]:
        """Located stages, consumers before producers."""
        return [n for n in reversed(self.dag.order) if n in self.host and n not in self.roles.fused]

    def deepest(self, host: str) -> int:
        """Largest number of the host's loops that may enclose another stage.

        For a tiled host, these are the loops up to the outer reduction level, or all but the
        innermost spatial level, because deeper loops hold the register tile. For another host,
        these are its outer spatial loops.
        """
        stage, shape = self.dag.stages[host], self.roles.shape.get(host)
        if isinstance(shape, MultiLevelTile):
            return _enclosing(stage, shape.structure)
        return num_leading(stage)

    def _host_of(self, name: str, hosts: dict[str, str]) -> str | None:
        consumers = self.dag.consumers(name)
        if name in hosts or name in self.tiled or not consumers or self.dag.is_output(name):
            return None
        if not _writes_in_place(self.dag, name):
            return None
        readers = [reader for reader, _ in self.roles.readers(name)]
        roots = {root_of(reader, hosts) for reader in readers}
        if len(roots) != 1 or not self._read_in_blocks(name, hosts):
            return None
        return roots.pop()

    def _read_in_blocks(self, name: str, hosts: dict[str, str]) -> bool:
        return all(
            read.is_affine or (reader not in hosts and _in_blocks(self.dag.stages[reader], read))
            for reader, buffer in self.roles.readers(name)
            for read in self.dag.stages[reader].reads
            if read.buffer == buffer
        )


def _in_blocks(stage: Stage, read: Access) -> bool:
    """Whether each part of a stage that is cut along divisors of its axes reads a block."""
    extents = [axis.extent for axis in stage.axes]
    sizes = [size for size in extents if isinstance(size, int)]
    if len(sizes) < len(extents):
        return False
    return all(index is not None and in_blocks(index, sizes) for index in read.indices)


def _enclosing(stage: Stage, structure: str) -> int:
    """Number of a tiled stage's loops outside its register tile."""
    spatial = num_leading(stage)
    if "R" not in structure:
        return (structure.count("S") - 1) * spatial
    return enclosing_loops(stage, structure)


def _writes_in_place(dag: ComputeDAG, name: str) -> bool:
    """Whether each dimension of the one buffer that the stage writes is one of its axes."""
    stage = dag.stages[name]
    axes = stage.writes[0].axes
    return len(stage.writes) == 1 and None not in axes and sorted(axes) == list(stage.spatial)  # type: ignore[type-var]
