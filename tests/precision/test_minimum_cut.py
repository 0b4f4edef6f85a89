"""The cut is the best of all assignments of small graphs."""

from __future__ import annotations

import math
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from ansor.run.precision.minimum_cut import Costs, cheapest_second, total_s

SECONDS = st.integers(0, 50).map(lambda n: n * 1e-6)
COSTS = st.one_of(
    st.builds(Costs, SECONDS, SECONDS),
    st.builds(Costs, SECONDS, st.just(math.inf)),
    st.builds(Costs, st.just(math.inf), SECONDS),
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, Costs], dict[tuple[int, int], float]]:
    nodes = dict(enumerate(draw(st.lists(COSTS, min_size=2, max_size=6))))
    pairs = st.sampled_from([*combinations(nodes, 2)])
    return nodes, draw(st.dictionaries(pairs, SECONDS, max_size=8))


@given(graphs())
def test_no_other_assignment_is_cheaper(
    graph: tuple[dict[int, Costs], dict[tuple[int, int], float]],
) -> None:
    nodes, conversions = graph
    found = total_s(nodes, conversions, cheapest_second(nodes, conversions))
    sets = chain.from_iterable(combinations(nodes, count) for count in range(len(nodes) + 1))
    best = min(total_s(nodes, conversions, frozenset(second)) for second in sets)
    assert found <= best + 1e-12


def test_a_node_between_two_others_follows_them() -> None:
    """It is a little slower, and less so than two conversions."""
    fast, slow = Costs(5e-6, 1e-6), Costs(1.0e-6, 1.2e-6)
    conversions = {(0, 1): 2e-7, (1, 2): 2e-7}
    assert cheapest_second({0: fast, 1: slow, 2: fast}, conversions) == {0, 1, 2}
    far = {(0, 1): 5e-8, (1, 2): 5e-8}
    assert cheapest_second({0: fast, 1: slow, 2: fast}, far) == {0, 2}


def test_without_a_choice_conversions_do_not_count() -> None:
    nodes = {0: Costs(math.inf, 1e-3), 1: Costs(1e-3, math.inf)}
    assert cheapest_second(nodes, {(0, 1): 1.0}) == {0}
