"""The orders and annotations that a knob may choose from (AutoTVM's policies)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

from ansor.errors import ArgumentError

ORDERS = ("identity", "all", "interval_all", "candidate", "interleave")
ANNOTATIONS = {"none": "none", "try": "none", "unroll": "unroll", "vec": "vec"}
Order = tuple[int, ...]


def order_choices(
    loops: Sequence[Any],
    policy: str,
    candidates: Sequence[Sequence[Any]],
    interval: tuple[int, int],
    spatial: Sequence[Sequence[Any]],
    reduce: Sequence[Sequence[Any]],
) -> list[Order]:
    """The orders of loops, as positions in `loops`; see `Config.reorder`.

    Raises:
        ArgumentError: there is no such policy, or no such loop.
    """
    if policy not in ORDERS:
        raise ArgumentError("policy", policy, f"must be one of {', '.join(ORDERS)}")
    numbers = tuple(range(len(loops)))
    if policy == "identity":
        return [numbers]
    if policy == "all":
        return list(permutations(numbers))
    if policy == "interval_all":
        begin, end = interval
        return [(*numbers[:begin], *x, *numbers[end:]) for x in permutations(numbers[begin:end])]
    if policy == "candidate":
        return [_positions(loops, order) for order in candidates]
    return _interleaved(
        [_positions(loops, chain) for chain in spatial],
        [_positions(loops, chain) for chain in reduce],
    )


def annotation_choices(count: int, policy: str, num_anchor: int) -> list[tuple[Any, ...]]:
    """The annotations of `count` loops; see `Config.annotate`.

    Raises:
        ArgumentError: there is no such policy.
    """
    if policy == "locate_cache":
        return list(combinations(range(count), num_anchor))
    words = policy.split("_")
    if not set(words) <= ANNOTATIONS.keys():
        known = "locate_cache, or words of none, try, unroll and vec joined by _"
        raise ArgumentError("policy", policy, f"must be {known}")
    allowed = [ANNOTATIONS[word] for word in words]
    return [anns for anns in product(allowed, repeat=count) if anns.count("vec") <= 1]


def _positions(loops: Sequence[Any], wanted: Sequence[Any]) -> Order:
    """Positions of loops, which are given themselves or as positions."""
    return tuple(_position(loops, loop) for loop in wanted)


def _position(loops: Sequence[Any], wanted: Any) -> int:
    if isinstance(wanted, int) and 0 <= wanted < len(loops):
        return wanted
    for number, loop in enumerate(loops):
        if loop is wanted or (hasattr(loop, "same_as") and loop.same_as(wanted)):
            return number
    raise ArgumentError("loops", wanted, "name one of the loops that the knob reorders")


def _interleaved(spatial: Sequence[Order], reduce: Sequence[Order]) -> list[Order]:
    """Outer spatial loops in turns, then inner spatial loops and reduction loops in turns."""
    outer = list(_merged([chain[:-1] for chain in spatial]))
    inner = list(_merged([*(chain[-1:] for chain in spatial), *reduce]))
    return [(*first, *last) for first in outer for last in inner]


def _merged(chains: Sequence[Order]) -> Iterator[Order]:
    """All orders in which the chain with the most loops left is always next."""
    left = max((len(chain) for chain in chains), default=0)
    if not left:
        yield ()
        return
    for number, chain in enumerate(chains):
        if len(chain) == left:
            rest = [c[1:] if i == number else c for i, c in enumerate(chains)]
            for tail in _merged(rest):
                yield (chain[0], *tail)
