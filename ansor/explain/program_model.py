"""`ProgramModel`: the draft and the details of a target for one program."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import HoleExtent, Stage
from ansor.explain.figures import DraftedTime, Part, StageTime
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Population, Sketch
from ansor.targets.machine import M
from ansor.targets.search import StageDraft, TargetSearch
from ansor.targets.stage_details import StageDetails, Transfer
from ansor.targets.time_parts import TimeParts


@dataclass(frozen=True, eq=False)
class ProgramModel:
    """The model of one program.

    Attributes:
        population: the program alone.
        main_stage: the stage with most operations.
        drafted: its time by the draft.
        details: of each stage that has some.
    """

    population: Population
    main_stage: str
    drafted: DraftedTime
    details: Mapping[str, StageDetails]

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The transfers of all stages, from the registers outwards."""
        total, rates = defaultdict[str, float](float), dict[str, float]()
        for each in self.details.values():
            for transfer in each.transfers:
                total[transfer.path] += transfer.bytes
                rates[transfer.path] = transfer.bytes_per_s
        return tuple(Transfer(path, total[path], rate) for path, rate in rates.items())


def model_of(program: Program, sketch: Sketch, machine: M, search: TargetSearch[M]) -> ProgramModel:
    """The model of a program of a derived sketch."""
    row = sketch.row_of(program)
    assert row is not None
    population = Population(sketch, np.asarray(row)[None])
    nest = build_nest(population)
    profiles = profile(nest)
    drafts = search.draft(nest, profiles, machine)
    found = search.details(nest, profiles, machine)
    return ProgramModel(population, main_stage(sketch.dag), _drafted(drafts), found)


def main_stage(dag: ComputeDAG) -> str:
    """The stage with most operations; among equals, the last one."""
    return max(reversed(dag.order), key=lambda name: _operations(dag.stages[name]))


def _operations(stage: Stage) -> int:
    """Operations of a stage; an axis whose size is a decision counts once."""
    sizes = [1 if isinstance(a.extent, HoleExtent) else a.extent for a in stage.axes]
    return math.prod(sizes) * stage.ops.flops


def _drafted(drafts: Mapping[str, StageDraft]) -> DraftedTime:
    """The parts of all stages together."""
    parts = {name: each.parts() for name, each in drafts.items()}
    seconds = float(sum(each.seconds[0] for each in drafts.values()))
    resources = _summed((each.resources for each in parts.values()), seconds)
    further = _summed((each.further for each in parts.values()), seconds)
    included = _summed((each.included for each in parts.values()), seconds)
    together_s = float(sum(each.together[0] for each in parts.values()))
    stages = tuple(
        StageTime(name, float(each.seconds[0]), _largest(parts[name]))
        for name, each in drafts.items()
        if each.seconds[0] > 0
    )
    bound = max((*resources, *further), key=lambda part: part.seconds).name
    return DraftedTime(seconds, resources, together_s, further, included, stages, bound)


def _summed(groups: Iterable[Mapping[str, np.ndarray]], whole_s: float) -> tuple[Part, ...]:
    """Parts with the same name as one, the largest first."""
    total = defaultdict[str, float](float)
    for group in groups:
        for name, seconds in group.items():
            total[name] += float(seconds[0])
    parts = [Part(name, seconds, seconds / whole_s) for name, seconds in total.items()]
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _largest(parts: TimeParts) -> str:
    """Name of the largest part of a stage."""
    each = {**parts.resources, **parts.further}
    return max(each, key=lambda name: float(each[name][0]))
