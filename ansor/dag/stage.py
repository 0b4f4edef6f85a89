"""Stages: axes, accesses, arithmetic. One stage per block of the PrimFunc."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from ansor.dag.index import Index, quotient


@dataclass(frozen=True)
class HoleExtent:
    """An extent that a decision chooses: column `column` of the row that fills `hole`."""

    hole: str
    column: int


@dataclass(frozen=True)
class Axis:
    """One loop of a stage's iteration domain."""

    name: str
    extent: int | HoleExtent
    reduce: bool

    @property
    def size(self) -> int:
        """The extent, where it is known before any decision.

        Raises:
            TypeError: a decision chooses it.
        """
        if isinstance(self.extent, HoleExtent):
            raise TypeError(
                f"the extent of axis {self.name} depends on decision {self.extent.hole}"
            )
        return self.extent


@dataclass(frozen=True)
class Buffer:
    """A tensor.

    Attributes:
        name: unique in its graph.
        shape: sizes; a decision may choose some of them.
        dtype: element type.
        kind: "input", "output" or "intermediate".
        constant: whether it is an input whose values are known when the network is compiled
            (weights). Its layout may change, and it is cold when it is read.
        narrow: whether its values are known to be narrow, see `ansor.dag.from_tir.narrow`.
    """

    name: str
    shape: tuple[int | HoleExtent, ...]
    dtype: str
    kind: str
    constant: bool = False
    narrow: bool = False

    @cached_property
    def item_bytes(self) -> int:
        """Bytes of one element."""
        digits = "".join(c for c in self.dtype if c.isdigit())
        return max(1, int(digits) // 8) if digits else 1

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole buffer; its sizes must be known."""
        return self.item_bytes * math.prod(size for size in self.shape if isinstance(size, int))


@dataclass(frozen=True)
class Group:
    """Neighbouring elements that one execution of a statement reads together, along `dim`.

    The index of that dimension names the first of them. It is a multiple of `elements`.
    """

    dim: int
    elements: int


@dataclass(frozen=True)
class Access:
    """One read or write: an index per dimension, None for an unsupported expression.

    With `group`, several elements are read at once.
    """

    buffer: str
    indices: tuple[Index | None, ...]
    group: Group | None = None

    @cached_property
    def group_indices(self) -> tuple[Index | None, ...]:
        """The indices; the dimension of a group counts groups instead of elements."""
        if self.group is None:
            return self.indices
        dim, found = self.group.dim, list(self.indices)
        index = found[dim]
        found[dim] = None if index is None else quotient(index, self.group.elements)
        return tuple(found)

    def reach(self, dim: int) -> int:
        """Elements that one execution touches along a dimension."""
        return self.group.elements if self.group is not None and self.group.dim == dim else 1

    @property
    def axes(self) -> tuple[int | None, ...]:
        """The axis along each dimension; None if the index is not a single axis."""
        return tuple(None if i is None else i.single_axis for i in self.indices)

    @property
    def is_affine(self) -> bool:
        """Whether every index is understood and affine."""
        return all(i is not None and i.is_affine for i in self.indices)


@dataclass(frozen=True)
class OpCounts:
    """Operations of one execution of the statement."""

    float_add: int = 0
    float_mul: int = 0
    float_div: int = 0
    float_cmp: int = 0  # max, min, comparisons
    float_special: int = 0  # exp, tanh, erf, sqrt ...
    int_add: int = 0
    int_mul: int = 0
    int_div: int = 0
    int_cmp: int = 0
    select: int = 0

    @property
    def flops(self) -> int:
        """Floating-point operations, or integer operations if there are none."""
        floats = self.float_add + self.float_mul + self.float_div + self.float_cmp
        return floats + self.float_special or self.int_add + self.int_mul

    def __add__(self, other: OpCounts) -> OpCounts:
        return OpCounts(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))


Span = tuple[int, int, int]  # an axis, the first of its values, and one past the last


@dataclass(frozen=True)
class DerivedAxis:
    """An axis that a step split in two: its value is ``outer * extent(inner) + inner``."""

    outer: int
    inner: int


@dataclass(frozen=True)
class Stage:
    """One block: an iteration domain, one statement, its reads and writes.

    Attributes:
        axes: in the block's order; TE puts spatial axes first.
        ops: operations of one execution of the statement.
        has_branch: whether the statement has a condition, such as one for padding.
        body: canonical text of the statement.
        derived: in accesses, axis ``len(axes) + i`` stands for ``derived[i]``.
        reducer: the commutative ``op`` of a reduction ``out = op(out, value)``, None for others.
        folded: axes that choose constants, such as the matrices of a Winograd transform. If their
            loops are unrolled, the constants become literals.
        nonzero: spans of axes; the stage writes zeros outside of them.
        masked: whether it may write zeros inside of the spans, too.
        density: share of the constants that are not zero; products with zeros vanish.
        instruction: the instruction that adds up the products of groups of elements
            (`ansor.dag.dot_products`), "" for none.
    """

    name: str
    axes: tuple[Axis, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    ops: OpCounts = field(default_factory=OpCounts)
    has_branch: bool = False
    body: str = ""
    derived: tuple[DerivedAxis, ...] = ()
    reducer: str | None = None
    folded: frozenset[int] = frozenset()
    nonzero: tuple[Span, ...] = ()
    masked: bool = False
    density: float = 1.0
    instruction: str = ""

    @property
    def spatial(self) -> tuple[int, ...]:
        """Positions of the spatial axes."""
        return tuple(i for i, axis in enumerate(self.axes) if not axis.reduce)

    @property
    def reduce(self) -> tuple[int, ...]:
        """Positions of the reduction axes."""
        return tuple(i for i, axis in enumerate(self.axes) if axis.reduce)

    @property
    def output(self) -> str:
        """The first buffer that the stage writes."""
        return self.writes[0].buffer


def axes_of_access(access: Access) -> set[int]:
    """Axes that an access depends on; all of them where an index is not understood."""
    out: set[int] = set()
    for index in access.indices:
        if index is None:
            return set(range(64))
        stack = [atom for atom, _ in index.terms]
        while stack:
            atom = stack.pop()
            if isinstance(atom, int):
                out.add(atom)
            else:
                stack += [inner for inner, _ in atom.index.terms]
    return out


def _fields(counts: OpCounts) -> list[int]:
    return list(vars(counts).values())
