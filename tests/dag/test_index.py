"""Laws of index normal forms: they mean the same integers as Python's arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.dag import index as ix
from ansor.dag.index import Index, Quotient

AXES = 3
Values = Sequence[int]
Meaning = Callable[[Values], int]

divisors = st.integers(1, 12)
factors = st.integers(-6, 6)
points = st.tuples(*[st.integers(-20, 50)] * AXES)


def evaluate(index: Index, values: Values) -> int:
    """The integer that an index is at a point."""
    total = index.const
    for atom, coef in index.terms:
        total += coef * _atom_value(atom, values)
    return total


def _atom_value(atom: ix.Atom, values: Values) -> int:
    if isinstance(atom, int):
        return values[atom]
    inner = evaluate(atom.index, values)
    return inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor


leaves = st.one_of(
    st.integers(0, AXES - 1).map(ix.axis_index), st.integers(-30, 30).map(lambda c: Index((), c))
)


def _grow(children: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    return st.one_of(
        st.builds(ix.add, children, children),
        st.builds(ix.scale, children, factors),
        st.builds(ix.quotient, children, divisors),
        st.builds(ix.remainder, children, divisors),
    )


indices = st.recursive(leaves, _grow, max_leaves=8)


@given(indices, indices, points)
def test_add_means_plus(left: Index, right: Index, point: Values) -> None:
    assert evaluate(ix.add(left, right), point) == evaluate(left, point) + evaluate(right, point)


@given(indices, indices)
def test_add_commutes_in_normal_form(left: Index, right: Index) -> None:
    assert ix.add(left, right) == ix.add(right, left)


@given(indices, factors, points)
def test_scale_means_times(index: Index, factor: int, point: Values) -> None:
    assert evaluate(ix.scale(index, factor), point) == factor * evaluate(index, point)


@given(indices, divisors, points)
def test_quotient_means_floor_division(index: Index, divisor: int, point: Values) -> None:
    assert evaluate(ix.quotient(index, divisor), point) == evaluate(index, point) // divisor


@given(indices, divisors, points)
def test_remainder_means_modulo(index: Index, divisor: int, point: Values) -> None:
    assert evaluate(ix.remainder(index, divisor), point) == evaluate(index, point) % divisor


@given(indices, st.tuples(*[indices] * AXES), points)
def test_substitute_means_composition(
    index: Index, inner: tuple[Index, ...], point: Values
) -> None:
    composed = ix.substitute(index, inner)
    assert composed is not None
    assert evaluate(composed, point) == evaluate(index, [evaluate(i, point) for i in inner])


@given(indices, st.permutations(range(AXES)), points)
def test_rename_renumbers_the_axes(index: Index, order: list[int], point: Values) -> None:
    renamed = ix.rename(index, dict(enumerate(order)))
    assert evaluate(renamed, point) == evaluate(index, [point[a] for a in order])


extents = st.lists(st.integers(1, 6), min_size=AXES, max_size=AXES)


@given(indices, extents, st.data())
def test_values_lie_within_the_bounds(index: Index, sizes: list[int], data: st.DataObject) -> None:
    point = [data.draw(st.integers(0, size - 1)) for size in sizes]
    low, high = ix.bounds(index, sizes)
    assert low <= evaluate(index, point) <= high


@given(indices, extents, st.data())
def test_simplifying_keeps_the_value_in_the_domain(
    index: Index, sizes: list[int], data: st.DataObject
) -> None:
    point = [data.draw(st.integers(0, size - 1)) for size in sizes]
    assert evaluate(ix.simplify(index, sizes), point) == evaluate(index, point)


def test_simplifying_removes_what_cannot_vary() -> None:
    group = ix.scale(ix.quotient(ix.axis_index(0), 64), 3)
    assert ix.simplify(group, [64]) == Index()
    assert ix.simplify(ix.remainder(ix.axis_index(0), 64), [64]) == ix.axis_index(0)


@given(indices)
def test_terms_hold_every_atom_once_without_zeros(index: Index) -> None:
    atoms = [atom for atom, _ in index.terms]
    assert len(set(atoms)) == len(atoms)
    assert all(coef for _, coef in index.terms)


def test_an_unknown_value_makes_the_whole_unknown() -> None:
    both = ix.add(ix.axis_index(0), ix.quotient(ix.axis_index(1), 2))
    assert ix.substitute(both, [ix.axis_index(0), None]) is None
    assert ix.substitute(ix.axis_index(0), [ix.axis_index(2), None]) == ix.axis_index(2)


@pytest.mark.parametrize(
    ("index", "axis"),
    [
        (ix.axis_index(1), 1),
        (ix.add(ix.axis_index(1), Index((), 3)), 1),
        (ix.scale(ix.axis_index(1), 2), None),
        (ix.add(ix.axis_index(0), ix.axis_index(1)), None),
        (Index((), 3), None),
    ],
)
def test_single_axis(index: Index, axis: int | None) -> None:
    assert index.single_axis == axis


def test_text() -> None:
    index = ix.add(ix.scale(ix.axis_index(1), 2), ix.remainder(ix.axis_index(0), 4))
    assert str(ix.add(index, Index((), -1))) == "2*i1 + (i0) % 4 + -1"
