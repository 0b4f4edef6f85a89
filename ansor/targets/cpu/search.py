"""The search on CPUs: Ansor's rules and annotation, and the draft of a core."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.annotate.complete import complete
from ansor.features.legality import legal
from ansor.program.nest import LoopNest
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.draft.breakdown import Breakdown
from ansor.targets.cpu.draft.details import details
from ansor.targets.cpu.draft.draft import draft
from ansor.targets.cpu.machine import Hardware
from ansor.targets.search import Profiles, TargetSearch
from ansor.targets.stage_details import StageDetails


def _draft(nest: LoopNest, profiles: Profiles, hardware: Hardware) -> Mapping[str, Breakdown]:
    return draft(profiles, hardware)


def _details(nest: LoopNest, profiles: Profiles, hardware: Hardware) -> Mapping[str, StageDetails]:
    return details(profiles, hardware)


CPU_SEARCH = TargetSearch(CPU_RULES, complete, legal, _draft, details=_details)
