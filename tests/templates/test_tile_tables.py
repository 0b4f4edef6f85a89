"""The tiles, orders and annotations of knobs."""

from __future__ import annotations

from math import factorial, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ArgumentError
from ansor.templates.orders import annotation_choices, order_choices
from ansor.templates.tile_tables import listed_tiles, tile_table

extents, parts = st.integers(1, 96), st.integers(1, 4)


@given(extents, parts)
def test_factors_multiply_to_the_extent(extent: int, parts: int) -> None:
    table = tile_table(extent, parts, "factors")
    assert (table.prod(axis=1) == extent).all()
    assert table[0].tolist() == [extent, *[1] * (parts - 1)]
    assert len({tuple(row) for row in table.tolist()}) == len(table)


@given(extents, st.integers(2, 4), st.sampled_from(["power2", "verbose"]))
def test_tails_cover_the_extent_and_waste_less_than_a_tile(
    extent: int, parts: int, policy: str
) -> None:
    for outer, *inner in tile_table(extent, parts, policy).tolist():
        assert 0 <= outer * prod(inner) - extent < prod(inner)


@given(extents, st.integers(1, 16))
def test_the_outermost_factor_is_not_bounded(extent: int, most: int) -> None:
    table = tile_table(extent, 3, "verbose", max_factor=most)
    assert (table[:, 1:] <= most).all()
    assert len(table)


def test_policies_have_autotvms_sizes() -> None:
    """Of an extent of 12: divisors, powers of two, and both, of two loops."""
    inner = {
        policy: sorted(tile_table(12, 2, policy)[:, 1].tolist())
        for policy in ("factors", "power2", "verbose")
    }
    assert inner["factors"] == [1, 2, 3, 4, 6, 12]
    assert inner["power2"] == [1, 2, 4, 8]
    assert inner["verbose"] == [1, 2, 3, 4, 6, 8, 12]
    assert sorted(tile_table(12, 2, "power2", no_tail=True)[:, 1].tolist()) == [1, 2, 4]


def test_listed_tiles_may_leave_the_outermost_open() -> None:
    assert listed_tiles(12, [[-1, 2, 3], [3, 2, 2]], 3).tolist() == [[2, 2, 3], [3, 2, 2]]
    with pytest.raises(ArgumentError, match="needs 2 factors"):
        listed_tiles(12, [[1, 2, 3]], 2)


def orders(policy: str, **given: object) -> list[tuple[int, ...]]:
    arguments = {"candidates": [], "interval": (0, 0), "spatial": [], "reduce": [], **given}
    return order_choices(list("abcd"), policy, **arguments)  # type: ignore[arg-type]


def test_orders_are_autotvms() -> None:
    assert orders("identity") == [(0, 1, 2, 3)]
    assert len(orders("all")) == factorial(4)
    assert orders("interval_all", interval=(1, 3)) == [(0, 1, 2, 3), (0, 2, 1, 3)]
    assert orders("candidate", candidates=["dcba", "abcd"]) == [(3, 2, 1, 0), (0, 1, 2, 3)]
    assert orders("interleave", spatial=["ab"], reduce=["cd"]) == [(0, 2, 1, 3), (0, 2, 3, 1)]


def test_at_most_one_loop_is_a_vector() -> None:
    found = annotation_choices(2, "try_unroll_vec", 1)
    assert ("none", "vec") in found
    assert ("vec", "vec") not in found
    assert len(found) == 8
    assert annotation_choices(3, "locate_cache", 2) == [(0, 1), (0, 2), (1, 2)]


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ArgumentError, match="factors, power2, verbose"):
        tile_table(4, 2, "primes")
    with pytest.raises(ArgumentError, match="interleave"):
        orders("random")
    with pytest.raises(ArgumentError, match="locate_cache"):
        annotation_choices(1, "bind", 1)
