"""Index expressions of buffer accesses in a normal form: coefficients times atoms, plus constant.

An atom is an axis of the stage (its position, an int) or a floor-quotient or remainder of such an
expression by a positive constant. That covers what TE and the operator library write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Quotient:
    """``floor(index / divisor)``."""

    index: Index
    divisor: int

    @property
    def of_axis(self) -> int | None:
        """The axis, if this is ``axis // divisor``."""
        return None if self.index.const else self.index.single_axis


@dataclass(frozen=True)
class Remainder:
    """``index mod divisor``, never negative."""

    index: Index
    divisor: int


Atom = int | Quotient | Remainder


@dataclass(frozen=True)
class Index:
    """``sum(coefficient * atom) + const``; `terms` is sorted and holds every atom once, no zero
    coefficients."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0

    @property
    def is_affine(self) -> bool:
        """Whether all atoms are axes."""
        return all(isinstance(atom, int) for atom, _ in self.terms)

    @property
    def single_axis(self) -> int | None:
        """The axis, if this is ``axis + const``."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and isinstance(self.terms[0][0], int):
            return self.terms[0][0]
        return None

    def __str__(self) -> str:
        parts = [_term_text(atom, coef) for atom, coef in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


def axis_index(axis: int) -> Index:
    """The index that is one axis."""
    return Index(((axis, 1),))


def add(left: Index, right: Index) -> Index:
    """Returns ``left + right`` in normal form."""
    merged: dict[Atom, int] = dict(left.terms)
    for atom, coef in right.terms:
        merged[atom] = merged.get(atom, 0) + coef
    terms = sorted(((atom, coef) for atom, coef in merged.items() if coef), key=_rank)
    return Index(tuple(terms), left.const + right.const)


def scale(index: Index, factor: int) -> Index:
    """Returns ``factor * index``."""
    if factor == 0:
        return Index()
    return Index(tuple((atom, c * factor) for atom, c in index.terms), index.const * factor)


def quotient(index: Index, divisor: int) -> Index:
    """Returns ``floor(index / divisor)``; `divisor` is positive.

    Terms that the divisor divides leave the quotient: ``(8 a + b) // 4 = 2 a + b // 4``.
    """
    whole = tuple((atom, c // divisor) for atom, c in index.terms if c % divisor == 0)
    rest = tuple((atom, c) for atom, c in index.terms if c % divisor)
    out, const = divmod(index.const, divisor)
    if not rest:
        return Index(whole, out)
    inner = Index(((Quotient(Index(rest, const), divisor), 1),))
    return add(Index(whole, out), inner)


def remainder(index: Index, divisor: int) -> Index:
    """Returns ``index mod divisor``; `divisor` is positive."""
    kept = tuple((atom, c) for atom, c in index.terms if c % divisor)
    if not kept:
        return Index((), index.const % divisor)
    return Index(((Remainder(Index(kept, index.const % divisor), divisor), 1),))


def runs_along(index: Index | None, axis: int) -> bool:
    """Whether an index advances by one with an axis."""
    return index is not None and (axis, 1) in index.terms


def bounds(index: Index, extents: Sequence[int]) -> tuple[int, int]:
    """Least and greatest value while each axis ``a`` runs over ``range(extents[a])``.

    Terms are taken as independent, so the true values may lie closer together.
    """
    low = high = index.const
    for atom, coef in index.terms:
        if isinstance(atom, int):
            first, last = 0, extents[atom] - 1
        elif isinstance(atom, Quotient):
            first, last = (v // atom.divisor for v in bounds(atom.index, extents))
        else:
            first, last = 0, atom.divisor - 1
        low += min(coef * first, coef * last)
        high += max(coef * first, coef * last)
    return low, high


def simplify(index: Index, extents: Sequence[int]) -> Index:
    """Removes quotients that are constant and remainders that change nothing in the domain."""
    total = Index((), index.const)
    for atom, coef in index.terms:
        simple = axis_index(atom) if isinstance(atom, int) else _simplify_atom(atom, extents)
        total = add(total, scale(simple, coef))
    return total


def _simplify_atom(atom: Quotient | Remainder, extents: Sequence[int]) -> Index:
    inner = simplify(atom.index, extents)
    first, last = (value // atom.divisor for value in bounds(inner, extents))
    if isinstance(atom, Quotient):
        return Index((), first) if first == last else quotient(inner, atom.divisor)
    if first == last:
        return add(inner, Index((), -first * atom.divisor))
    return remainder(inner, atom.divisor)


def in_blocks(index: Index, extents: Sequence[int]) -> bool:
    """Whether blocks of the axes read blocks of values: a block starts at a multiple of its length,
    which divides the extent.

    Each atom is an axis, or a quotient of one. A block of such a quotient contains whole steps, or
    lies inside a step: ``i // 32`` for an extent of 128, but not ``i // 24`` for 96. There blocks
    of 16 lie across two steps.
    """
    return all(isinstance(atom, int) or _steps_in_blocks(atom, extents) for atom, _ in index.terms)


def _steps_in_blocks(atom: Quotient | Remainder, extents: Sequence[int]) -> bool:
    if isinstance(atom, Remainder) or (axis := atom.of_axis) is None:
        return False
    lengths = [n for n in range(1, extents[axis] + 1) if extents[axis] % n == 0]
    return all(n % atom.divisor == 0 or atom.divisor % n == 0 for n in lengths)


def substitute(index: Index, values: Sequence[Index | None]) -> Index | None:
    """Replaces axis ``a`` by ``values[a]``; None (unknown) if an unknown value is needed."""
    total = Index((), index.const)
    for atom, coef in index.terms:
        value = _substitute_atom(atom, values)
        if value is None:
            return None
        total = add(total, scale(value, coef))
    return total


def rename(index: Index, axes: Mapping[int, int]) -> Index:
    """Renumbers the axes of `index`."""
    size = max(axes, default=-1) + 1
    values = [axis_index(axes[a]) if a in axes else None for a in range(size)]
    renamed = substitute(index, values)
    assert renamed is not None
    return renamed


def _substitute_atom(atom: Atom, values: Sequence[Index | None]) -> Index | None:
    if isinstance(atom, int):
        return values[atom]
    inner = substitute(atom.index, values)
    if inner is None:
        return None
    make = quotient if isinstance(atom, Quotient) else remainder
    return make(inner, atom.divisor)


def _rank(term: tuple[Atom, int]) -> tuple[bool, int, str]:
    """Order of terms: axes by number, then the others by their text."""
    atom = term[0]
    if isinstance(atom, int):
        return False, atom, ""
    return True, 0, _term_text(atom, 1)


def _term_text(atom: Atom, coef: int) -> str:
    if isinstance(atom, int):
        text = f"i{atom}"
    else:
        sign = "//" if isinstance(atom, Quotient) else "%"
        text = f"({atom.index}) {sign} {atom.divisor}"
    return text if coef == 1 else f"{coef}*{text}"
