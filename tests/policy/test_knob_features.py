"""The programs of all sketches as rows of one width."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import sketches

from ansor.annotate.sample import sample
from ansor.policy.published.knobs import KnobSpace, Points


@pytest.fixture(scope="module")
def space() -> KnobSpace:
    return KnobSpace(sketches("matmul_relu"))


def test_features_are_the_sketch_and_the_values_of_its_decisions(space: KnobSpace) -> None:
    all_sketches = sketches("matmul_relu")
    for number, sketch in enumerate(all_sketches):
        population = sample(sketch, 5, np.random.default_rng(number))
        features = space.features(space.points(number, population.choices))
        assert features.dtype == np.float32
        assert features[:, : len(all_sketches)].argmax(axis=1).tolist() == [number] * 5
        values = np.concatenate([population.values(d.name) for d in sketch.decisions], axis=1)
        for row, expected in zip(features, values, strict=True):
            present = row[len(all_sketches) :]
            assert sorted(present[~np.isnan(present)]) == sorted(expected)


def test_a_decision_of_the_same_name_has_the_same_features(space: KnobSpace) -> None:
    """The first two sketches tile the same axes."""
    first, second = sketches("matmul_relu")[:2]
    assert [d.name for d in first.decisions] == [d.name for d in second.decisions]
    zero = np.zeros((1, len(first.decisions)), dtype=np.int32)
    pair = [space.features(space.points(number, zero))[0, 9:] for number in (0, 1)]
    assert np.array_equal(np.isnan(pair[0]), np.isnan(pair[1]))


def test_a_move_changes_one_decision_to_any_other_choice(space: KnobSpace) -> None:
    rng = np.random.default_rng(0)
    points = space.random(2000, rng)
    moved = space.moved(points, rng)
    assert ((moved.rows != points.rows).sum(axis=1) == 1).all()
    assert (moved.sketch == points.sketch).all()
    for number, sketch in enumerate(sketches("matmul_relu")):
        rows = moved.rows[moved.sketch == number]
        sizes = [d.size for d in sketch.decisions] + [1] * (space.width - len(sketch.decisions))
        assert len(rows) > 100
        assert ((rows >= 0) & (rows < sizes)).all()


def test_a_program_without_alternatives_stays() -> None:
    (only, *_) = sketches("total_sum")
    frozen = KnobSpace([only])
    rows = np.zeros((4, len(only.decisions)), dtype=np.int32)
    frozen._num_free[:] = 0
    points = frozen.points(0, rows)
    assert (frozen.moved(points, np.random.default_rng(0)).rows == rows).all()


def test_keys_tell_programs_apart(space: KnobSpace) -> None:
    points = space.random(20_000, np.random.default_rng(0))
    rows = np.concatenate([points.sketch[:, None], points.rows], axis=1)
    assert len(np.unique(space.keys(points))) == len(np.unique(rows, axis=0))
    again = Points(points.sketch.copy(), points.rows.copy())
    assert np.array_equal(space.keys(points), space.keys(again))
