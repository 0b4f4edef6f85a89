"""The finished searches of `benchmarks.policies`, one line of JSON each: a stopped run
continues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ansor.errors import AnsorError
from benchmarks.policy_search import Job, Search, Step


class StateError(AnsorError):
    """A file of searches cannot be continued."""


@dataclass
class State:
    """What is done.

    Attributes:
        file: that is extended; None keeps everything in memory.
        setting: what all searches of a file have in common, such as the device.
        searches: the finished searches by job.
        retimed_us: microseconds of programs that were timed again, by operator and text.
    """

    file: Path | None
    setting: Mapping[str, Any]
    searches: dict[Job, Search] = field(default_factory=dict)
    retimed_us: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file is None:
            return
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        if not lines:
            self._write({"setting": dict(self.setting)})
            return
        first, *rest = map(json.loads, lines)
        if first != {"setting": dict(self.setting)}:
            remedy = "give another --state, or the same options"
            raise StateError(f"{self.file}: searches with {first.get('setting')}; {remedy}")
        for line in rest:
            self._read(line)

    def _read(self, line: Mapping[str, Any]) -> None:
        if "retimed_us" in line:
            self.retimed_us[line["op"]] = line["retimed_us"]
            return
        steps = tuple(Step(**step) for step in line["steps"])
        batches = tuple((int(count), float(seconds)) for count, seconds in line["batches"])
        search = Search(Job(**line["job"]), batches, steps)
        self.searches[search.job] = search

    def add(self, search: Search) -> None:
        """Notes a finished search."""
        self.searches[search.job] = search
        self._write(asdict(search))

    def add_times(self, op: str, retimed_us: Mapping[str, float]) -> None:
        """Notes the times of an operator's programs."""
        self.retimed_us[op] = dict(retimed_us)
        self._write({"op": op, "retimed_us": dict(retimed_us)})

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as out:
                out.write(f"{json.dumps(line)}\n")
