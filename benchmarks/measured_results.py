"""Result files as `benchmarks.measured` reads them: every missing key is reported with its file.

A file holds the JSON document of one benchmark, or several documents under the key "runs".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ansor.errors import AnsorError

T = TypeVar("T")

_PROCESSORS = {  # by LLVM's name, in the order of the page
    "znver5": "Zen 5",
    "znver4": "Zen 4",
    "cascadelake": "Cascade Lake",
    "znver1": "Zen 1",
}


class MissingKeyError(AnsorError, KeyError):
    """A result file lacks a key.

    Args:
        file: name of the file.
        key: the key with its path in the document, such as "runs[0].environment.commit".
    """

    def __init__(self, file: str, key: str) -> None:
        super().__init__(file, key)
        self._text = f"{file}: no key {key!r}"

    def __str__(self) -> str:
        return self._text


class Entry(Mapping[str, Any]):
    """A JSON object that knows its file and its place in it; nested objects are entries too.

    Args:
        file: name of the file.
        place: path of the object in the document, such as "runs[0]", "" for the document.
        values: the object.
    """

    def __init__(self, file: str, place: str, values: Mapping[str, Any]) -> None:
        self._file, self._place, self._values = file, place, values

    def __getitem__(self, key: str) -> Any:
        """The value of a key.

        Raises:
            MissingKeyError: the object lacks the key.
        """
        place = f"{self._place}.{key}" if self._place else key
        if key not in self._values:
            raise MissingKeyError(self._file, place)
        return _wrapped(self._file, place, self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _wrapped(file: str, place: str, value: Any) -> Any:
    """The value with every object in it as an entry."""
    if isinstance(value, dict):
        return Entry(file, place, value)
    if isinstance(value, list):
        return [_wrapped(file, f"{place}[{index}]", part) for index, part in enumerate(value)]
    return value


def read_runs(file: Path) -> list[Entry]:
    """The documents of a result file."""
    document = Entry(file.name, "", json.loads(file.read_text(encoding="utf-8")))
    return list(document["runs"]) if "runs" in document else [document]


def processor(run: Entry) -> str:
    """The name of the microarchitecture, or LLVM's name if it has no entry here."""
    name: str = run["environment"]["target"]["mcpu"]
    return _PROCESSORS.get(name, name)


def commit(run: Entry) -> str:
    """The commit that was measured, "-" if it is not known."""
    return run["environment"]["commit"] or "-"


def by_processor(runs: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The runs of each processor, in the order of the page."""
    order = list(_PROCESSORS.values())
    groups = group(runs, processor)
    names = sorted(groups, key=lambda name: order.index(name) if name in order else len(order))
    return {name: groups[name] for name in names}


def group(entries: Sequence[Entry], key: Callable[[Entry], T]) -> dict[T, list[Entry]]:
    """Entries by the value of a function, in the order of their first entries."""
    groups: dict[T, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def rows_of(runs: Sequence[Entry]) -> list[Entry]:
    """The results of all runs."""
    return [row for run in runs for row in run["results"]]


def machine(runs: Sequence[Entry]) -> str:
    """One line about the runs of one processor: name, threads, commits, dates, measured peak."""
    first = runs[0]["environment"]
    commits = list(dict.fromkeys(commit(run) for run in runs))
    parts = [
        f"**{processor(runs[0])}** ({first['processor']})",
        f"{first['threads']} threads",
        f"{'commit' if len(commits) == 1 else 'commits'} {', '.join(commits)}",
    ]
    dates = sorted(time[:10] for run in runs if (time := run["environment"].get("time")))
    peaks = sorted(peak for run in runs if (peak := run["environment"].get("peak_gflops")))
    if dates:
        parts.append(_span(dates))
    if peaks:
        parts.append(f"peak {_span([f'{peak:.0f}' for peak in peaks])} GFLOP/s")
    return ", ".join(parts)


def machines(runs: Sequence[Entry]) -> str:
    """A list with a line per processor."""
    return "\n".join(f"- {machine(same)}" for same in by_processor(runs).values())


def _span(values: Sequence[str]) -> str:
    """The first and the last of sorted texts, once if they are equal."""
    return " to ".join(dict.fromkeys((values[0], values[-1])))
