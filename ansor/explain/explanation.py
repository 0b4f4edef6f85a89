"""`Explanation`: why the winner of a task is fast, and what limits it; frozen data for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansor.explain.figures import DraftedTime, LevelTraffic, Limits, RunnerUp, SearchSummary
from ansor.explain.text import (
    draft_text,
    occupancy_text,
    runner_up_text,
    search_text,
    tile_text,
    times_text,
    traffic_text,
)
from ansor.report.database_tables import target_name
from ansor.targets.stage_details import RegisterTile


@dataclass(frozen=True)
class Explanation:
    """Why the winner of one task is as fast as it is; `str` gives the text.

    Attributes:
        task: name of the function.
        key: of the winner's task.
        variant: kind of the winner's definition.
        target: canonical text of the target.
        machine: name of the processor or GPU.
        sketch: name of the winner's sketch.
        decisions: the winner's values by the name of the decision.
        limits: measured time, peak and bandwidth.
        drafted: the draft's time; None if the loops of the winner are not known.
        main_stage: the stage with most operations; "" without loops.
        tile: its register tile; None if the kind of target describes none.
        occupancy: figures of its kernel on a GPU.
        traffic: from the registers outwards.
        loops: pseudo-code of the winner.
        runner_up: None if no other program was measured.
        search: what was tried.
        note: why a part is missing, "" if none is.
    """

    task: str
    key: str
    variant: str
    target: str
    machine: str
    sketch: str
    decisions: Mapping[str, tuple[int, ...]]
    limits: Limits
    drafted: DraftedTime | None
    main_stage: str
    tile: RegisterTile | None
    occupancy: Mapping[str, float]
    traffic: tuple[LevelTraffic, ...]
    loops: str
    runner_up: RunnerUp | None
    search: SearchSummary
    note: str = field(default="")

    def __str__(self) -> str:
        return "\n\n".join(self._blocks())

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self)

    def _blocks(self) -> Iterator[str]:
        """The text of each part."""
        where = f"{self.machine}, target {target_name(self.target)}"
        winner = f"variant {self.variant}, sketch {self.sketch}, task {self.key[:8]}"
        yield f"{self.task}\n{winner}\n{where}"
        yield times_text(self.limits, self.drafted, self.variant)
        if self.note:
            yield f"Note: {self.note}."
        if self.drafted is not None:
            yield draft_text(self.drafted)
        if self.tile is not None:
            yield tile_text(self.main_stage, self.tile)
        if self.occupancy:
            yield occupancy_text(self.main_stage, self.occupancy)
        if self.traffic:
            yield traffic_text(self.traffic, self.limits)
        if self.loops:
            yield f"Loops of the winner:\n{self.loops}"
        yield runner_up_text(self.runner_up, self.limits)
        yield search_text(self.search)
