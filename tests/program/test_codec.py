"""Programs as text and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from definitions import NAMES, sketches
from hypothesis import given
from hypothesis import strategies as st
from sampling import sample

from ansor.dag.contraction import Contraction
from ansor.dag.padding import Padded
from ansor.program.codec import decode, encode
from ansor.program.program import Program
from ansor.program.sketch import Sketch
from ansor.program.steps import AsProduct, LoadFragment, SkipPadding, Tensorize

all_sketches = st.sampled_from(NAMES).flatmap(lambda name: st.sampled_from(sketches(name)))
seeds = st.integers(0, 2**32 - 1)


def draw(sketch: Sketch, seed: int) -> Program:
    return sample(sketch, 1, np.random.default_rng(seed)).program(0)


@given(all_sketches, seeds)
def test_round_trip(sketch: Sketch, seed: int) -> None:
    program = draw(sketch, seed)
    assert decode(encode(program)) == program


@given(all_sketches, seeds, seeds)
def test_equal_text_means_equal_programs(sketch: Sketch, one: int, other: int) -> None:
    first, second = draw(sketch, one), draw(sketch, other)
    assert (encode(first) == encode(second)) == (first == second)


def test_what_steps_are_made_of_round_trips() -> None:
    steps = (
        AsProduct("C", "D", Contraction((0,), (1, 2), (), (3,), 1), 16),
        SkipPadding("C", (Padded("wide", 1, 1, 15, (0, 2), 0.875),), "C.padding"),
        LoadFragment("C", "D", "a"),
        Tensorize("C", ("a", "b"), "D", (True, False), False),
    )
    found = decode(encode(Program("x", steps, {"C.padding": (1,)})))
    assert found.steps == steps
    assert hash(found.steps) == hash(steps)


def test_the_untuned_program_round_trips() -> None:
    assert decode(encode(Program())) == Program()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "null",
        "{}",
        '{"sketch": "x", "steps": [["Fold", {}]], "values": {}}',
        '{"sketch": "x", "steps": [["Inline", {"place": "A"}]], "values": {}}',
        '{"sketch": "x", "steps": [], "values": {"hole": 3}}',
        '{"sketch": "x", "steps": [["Inline"]], "values": {}}',
        '{"sketch": "x", "steps": [["Inline", 3]], "values": {}}',
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own error is one too
        decode(text)


def test_the_text_is_one_line_of_plain_json() -> None:
    text = encode(draw(sketches("conv2d")[0], 0))
    assert "\n" not in text
    assert set(json.loads(text)) == {"sketch", "steps", "values"}
