"""Nested arguments and results: mapped to tensors in a row and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansor.errors import ArgumentError
from ansor.frontend.calling import (
    CONSTANT,
    LIST,
    NAMED,
    TENSOR,
    TUPLE,
    Calling,
    NamedOutputs,
    Structure,
    calling_from_json,
    calling_to_json,
    flat_calling,
)

NAMES = ("x", "state", "mask", "logits")


@st.composite
def structures(draw: st.DrawFn, depth: int = 3) -> Structure:
    """Structures whose tensors have no positions yet."""
    kinds = [TENSOR, CONSTANT] + ([TUPLE, LIST, NAMED] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == TENSOR:
        return Structure(TENSOR)
    if kind == CONSTANT:
        return Structure(CONSTANT, value=draw(st.sampled_from([None, 3, 0.5, True])))
    parts = tuple(draw(st.lists(structures(depth - 1), min_size=1, max_size=3)))
    names = NAMES[: len(parts)] if kind == NAMED else ()
    return Structure(kind, names=names, parts=parts)


def numbered(structure: Structure, counter: list[int]) -> Structure:
    if structure.kind == TENSOR:
        counter[0] += 1
        return Structure(TENSOR, counter[0] - 1)
    parts = tuple(numbered(part, counter) for part in structure.parts)
    return Structure(structure.kind, -1, structure.value, structure.names, parts)


def value_of(structure: Structure, tensors: list[Any]) -> Any:
    """The value that a user would hold: dictionaries are plain."""
    if structure.kind == TENSOR:
        return tensors[structure.position]
    if structure.kind == CONSTANT:
        return structure.value
    parts = [value_of(part, tensors) for part in structure.parts]
    if structure.kind == NAMED:
        return dict(zip(structure.names, parts, strict=True))
    return parts if structure.kind == LIST else tuple(parts)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(structures(2), min_size=1, max_size=4))
def test_nested_arguments_become_a_row_and_survive_json(parts: list[Structure]) -> None:
    counter = [0]
    listed = [numbered(part, counter) for part in parts]
    tensors = [np.full(1, place) for place in range(counter[0])]
    parameters = dict(zip(NAMES, listed, strict=False))
    calling = calling_from_json(
        json.loads(json.dumps(calling_to_json(Calling(parameters, counter[0], listed[0]))))
    )
    values = {name: value_of(part, tensors) for name, part in parameters.items()}
    assert calling == Calling(parameters, counter[0], listed[0])
    assert calling.tensors((), values) == tensors
    assert calling.tensors(list(values.values()), {}) == tensors
    assert calling.tensors(tensors, {}) == tensors
    assert list(listed[0].positions()) == list(range(len(list(listed[0].positions()))))


class TestArguments:
    CALLING = Calling(
        {
            "x": Structure(TENSOR, 0),
            "state": Structure(TUPLE, parts=(Structure(TENSOR, 1), Structure(TENSOR, 2))),
            "count": Structure(CONSTANT, value=3),
        },
        3,
    )

    def test_constants_may_be_left_out(self) -> None:
        assert self.CALLING.tensors(["x", ("h", "c")], {}) == ["x", "h", "c"]

    def test_another_constant_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="count=4: the network was imported with 3"):
            self.CALLING.tensors([1.0, (1.0, 1.0), 4], {})

    @pytest.mark.parametrize(
        ("args", "kwargs", "message"),
        [
            ((1, (1, 1), 3, 4), {}, "inputs=4"),
            ((1,), {}, "state='NoneType': give a tuple of 2 parts"),
            ((1, (1,)), {}, "state='tuple': give a tuple of 2 parts"),
            ((1, (1, 1)), {"x": 1}, "x='int': give each once"),
            ((1, (1, 1)), {"y": 1}, "y='int': give each once"),
            ((None, (1, 1)), {}, "x=None: this tensor is missing"),
        ],
    )
    def test_wrong_ones_are_named(self, args: Any, kwargs: Any, message: str) -> None:
        with pytest.raises(ArgumentError, match=message.replace("(", r"\(")):
            self.CALLING.tensors(args, kwargs)


class TestResults:
    def test_named_results_are_a_tuple_of_tensors_with_names(self) -> None:
        parts = (Structure(TENSOR, 0), Structure(LIST, parts=(Structure(TENSOR, 1),)))
        calling = Calling(result=Structure(NAMED, names=("a", "b"), parts=parts))
        made = calling.results([10, 11])
        assert isinstance(made, NamedOutputs)
        assert tuple(made) == (10, 11)
        assert made["b"] == [11]
        assert made.a == made[0] == 10
        assert made.keys() == ["a", "b"]
        with pytest.raises(AttributeError, match="no output 'c'; there are a, b"):
            _ = made.c

    def test_tuples_keep_none(self) -> None:
        parts = (Structure(TENSOR, 0), Structure(CONSTANT))
        assert Calling(result=Structure(TUPLE, parts=parts)).results([10]) == (10, None)

    def test_flat(self) -> None:
        assert flat_calling(["x"], None).results([1]) == 1
        assert flat_calling(["x"], 1).results([1]) == (1,)
