"""The pictures of the pages about concepts are what the code draws."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from ansor.program.nest import build_nest
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from docs.website.cache_levels import STAGE, chosen, rows
from docs.website.derivation import Node, derivation
from docs.website.draw import FOLDER, PICTURES
from docs.website.example import MACHINE, example


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_is_drawn(name: str) -> None:
    drawn = PICTURES[name]()
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "run python -m docs.website.draw"
    ElementTree.fromstring(drawn)


def test_every_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    assert all(f"]({name})" in pages for name in PICTURES)
    assert {path.name for path in FOLDER.glob("*.svg")} == set(PICTURES)


def leaves(node: Node) -> list[Node]:
    return [node] if not node.children else [x for child in node.children for x in leaves(child)]


def test_the_leaves_of_the_derivation_are_the_sketches() -> None:
    found = sorted(str(leaf.state.steps) for leaf in leaves(derivation()))
    states = generate(example(), MACHINE, CPU_RULES)
    assert found == sorted(str(state.steps) for state in states)


def test_the_loops_are_those_of_the_program() -> None:
    nest = build_nest(chosen())
    listed = rows(nest)
    extents = [int(row.text.split()[2]) for row in listed[:-1]]
    assert math.prod(extents) == 512**3 == nest.stages[STAGE].extents[:, 0].prod(dtype="int64")
    totals = [sum(row.bytes.values()) for row in listed]
    assert totals == sorted(totals, reverse=True)
    for row, total in zip(listed, totals, strict=True):
        assert row.level == 0 or total > MACHINE.cache_bytes[row.level - 1]
        assert row.level == len(MACHINE.cache_bytes) or total <= MACHINE.cache_bytes[row.level]
