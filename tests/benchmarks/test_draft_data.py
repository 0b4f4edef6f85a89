"""Files of measured programs: what is written is read, and unusable files are refused."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_drafts import HARDWARE, NAMES, PROGRAMS, tiny

from benchmarks.draft_data import DataError, lower_of, read, write

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The tiny set as a file, in a folder that did not exist."""
    file = tmp_path / "made" / "tiny.json.xz"
    write(tiny(), file)
    return file


def edit(file: Path, change: Edit) -> None:
    """Changes the document of a file."""
    document = json.loads(lzma.decompress(file.read_bytes()))
    change(document)
    file.write_bytes(lzma.compress(json.dumps(document).encode()))


def first_part(document: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = document["definitions"][NAMES[0]][0]
    return part


def first_hole(document: dict[str, Any]) -> list[list[int]]:
    rows: list[list[int]] = next(iter(first_part(document)["values"].values()))
    return rows


def test_what_is_written_is_read(file: Path) -> None:
    written, found = tiny(), read(file)
    assert (found.kind, found.hardware, found.about) == ("tiny", HARDWARE, {"threads": 3})
    assert list(found.definitions) == list(NAMES)
    for name in NAMES:
        for before, after in zip(written.definitions[name], found.definitions[name], strict=True):
            assert after.population.sketch.steps == before.population.sketch.steps
            assert np.array_equal(after.population.choices, before.population.choices)
            assert np.array_equal(after.preferred, before.preferred)
            assert after.latency_s == pytest.approx(before.latency_s, rel=1e-4)


@pytest.mark.parametrize("content", [b"", b"text", lzma.compress(b"text"), lzma.compress(b"[1]")])
def test_an_unreadable_file_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broken.json.xz"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"broken\.json\.xz: not a file of measurements"):
        read(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a file of measurements: FileNotFoundError"):
        read(tmp_path / "missing.json.xz")


def test_another_version_is_refused(file: Path) -> None:
    edit(file, lambda document: document.update(version=7))
    with pytest.raises(DataError, match="version 7 is not 1"):
        read(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["hardware"].update(colour="red"),
        lambda document: document.pop("kind"),
        lambda document: first_part(document).pop("preferred"),
        lambda document: first_part(document)["preferred"].pop(),
        lambda document: first_part(document)["latency_s"].__setitem__(0, -1.0),
        lambda document: first_part(document)["latency_s"].__setitem__(0, float("nan")),
    ],
    ids=["hardware", "kind", "preferred", "lengths", "negative", "nan"],
)
def test_a_broken_document_is_refused(change: Edit, file: Path) -> None:
    edit(file, change)
    with pytest.raises(DataError, match="not a file of measurements"):
        read(file)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda document: first_hole(document).__setitem__(0, [123457]), 1),
        (lambda document: first_part(document).update(values={}), PROGRAMS),
        (lambda document: first_part(document).update(steps=[]), PROGRAMS),
        (lambda document: first_part(document).update(steps=[["Melt", {}]]), PROGRAMS),
    ],
    ids=["value", "hole", "sketch", "step"],
)
def test_vanished_programs_are_counted(change: Edit, lost: int, file: Path) -> None:
    edit(file, change)
    with pytest.raises(DataError, match=rf"{lost} programs no longer exist .*{NAMES[0]} {lost}.*"):
        read(file)


def test_a_vanished_definition_is_named(file: Path) -> None:
    edit(
        file,
        lambda document: document["definitions"].update(gone=document["definitions"].pop("heads")),
    )
    with pytest.raises(DataError, match=r"no longer exist in the sketches \(gone \d+\); measure"):
        read(file)


def test_some_definitions_are_read_alone(file: Path) -> None:
    assert list(read(file, names=["row_sum"]).definitions) == ["row_sum"]


def test_a_definition_without_measurements_is_refused(file: Path) -> None:
    with pytest.raises(DataError, match=r"no measurements of GMM\.1"):
        read(file, names=["GMM.1"])


def test_two_runs_have_the_lower_times() -> None:
    first = tiny()
    slow = {
        name: [replace(part, latency_s=part.latency_s[::-1]) for part in parts]
        for name, parts in first.definitions.items()
    }
    second = replace(first, about={"threads": 3, "seed": 1}, definitions=slow)
    found = lower_of(first, second)
    assert found.about == {"runs": [first.about, second.about]}
    for name in NAMES:
        for before, after in zip(first.definitions[name], found.definitions[name], strict=True):
            expected = np.minimum(before.latency_s, before.latency_s[::-1])
            assert np.array_equal(after.latency_s, expected)


@pytest.mark.parametrize("change", ["kind", "definition", "sketch", "program"])
def test_runs_of_different_programs_are_not_combined(change: str) -> None:
    first = tiny()
    parts = list(first.definitions["heads"])
    turned = replace(parts[0].population, choices=parts[0].population.choices[::-1])
    others = {
        "kind": replace(first, kind="other"),
        "definition": replace(first, definitions={"heads": parts}),
        "sketch": replace(first, definitions={**first.definitions, "heads": parts[1:]}),
        "program": replace(
            first,
            definitions={
                **first.definitions,
                "heads": [replace(parts[0], population=turned), *parts[1:]],
            },
        ),
    }
    with pytest.raises(DataError, match="cannot be combined"):
        lower_of(first, others[change])
