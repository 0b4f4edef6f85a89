"""All sketches of the small definitions, compared as sets with files that people have read.

``pytest --update-golden tests/sketch`` writes the files anew.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from definitions import NAMES, TILED, sketches, tile_sketches
from gpu import gpu_sketches
from sketch_text import sketch_text

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", NAMES)
def test_sketches_are_those_of_the_golden_file(name: str, update_golden: bool) -> None:
    texts = [sketch_text(sketch) for sketch in sketches(name)]
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.write_text("\n\n".join(texts) + "\n")
    expected = file.read_text().rstrip("\n").split("\n\n")
    assert set(texts) == set(expected)


@pytest.mark.parametrize("name", NAMES)
def test_gpu_sketches_are_those_of_the_golden_file(name: str, update_golden: bool) -> None:
    texts = [sketch_text(sketch) for sketch in gpu_sketches(name)]
    file = GOLDEN / "gpu" / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n\n".join(texts) + "\n")
    assert set(texts) == set(file.read_text().rstrip("\n").split("\n\n"))


@pytest.mark.parametrize("name", TILED)
def test_sketches_with_tiles_are_those_of_the_golden_file(name: str, update_golden: bool) -> None:
    found = [*tile_sketches(name), *tile_sketches(name, (1,))]
    texts = list(dict.fromkeys(sketch_text(sketch) for sketch in found))
    file = GOLDEN / "tiles" / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n\n".join(texts) + "\n")
    assert set(texts) == set(file.read_text().rstrip("\n").split("\n\n"))


@pytest.mark.parametrize(
    ("folder", "names"), [(GOLDEN, NAMES), (GOLDEN / "gpu", NAMES), (GOLDEN / "tiles", TILED)]
)
def test_every_golden_file_is_of_a_definition(folder: Path, names: Collection[str]) -> None:
    assert {file.stem for file in folder.glob("*.txt")} == set(names)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"separable_conv2d"}))
def test_a_typical_subgraph_has_fewer_than_ten_sketches(name: str) -> None:
    assert 1 <= len(sketches(name)) < 10


def test_a_chain_of_two_costly_stages_has_a_few_more() -> None:
    assert len(sketches("separable_conv2d")) <= 16
