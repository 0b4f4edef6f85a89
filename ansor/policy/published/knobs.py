"""The programs of all sketches as rows of one width, for one model and for walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.annotate.sample import sample
from ansor.features.loop_tables import Floats
from ansor.program.decision import IntArray
from ansor.program.sketch import Sketch

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Points:
    """Programs of several sketches.

    Attributes:
        sketch: `[P] int64`, the number of each program's sketch.
        rows: `[P, W] int32`, the choices, 0 after the last decision of the sketch.
    """

    sketch: npt.NDArray[np.int64]
    rows: IntArray

    def __len__(self) -> int:
        return len(self.sketch)

    def take(self, which: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Points:
        """Some of the programs."""
        return Points(self.sketch[which], self.rows[which])

    def joined(self, other: Points) -> Points:
        """Both together."""
        sketches = np.concatenate([self.sketch, other.sketch])
        return Points(sketches, np.concatenate([self.rows, other.rows]))

    def where(self, which: npt.NDArray[np.bool_], other: Points) -> Points:
        """The programs at which `which [P]` holds; at other places, those of another one."""
        sketches = np.where(which, self.sketch, other.sketch)
        return Points(sketches, np.where(which[:, None], self.rows, other.rows))


class KnobSpace:
    """The programs of all sketches; a decision of the same name has the same features in all."""

    def __init__(self, sketches: Sequence[Sketch]) -> None:
        self._sketches = sketches
        self.width = max((len(s.decisions) for s in sketches), default=0)
        self._sizes = np.ones((len(sketches), self.width), dtype=np.int64)
        self._free = np.zeros((len(sketches), self.width), dtype=np.int64)
        for number, sketch in enumerate(sketches):
            sizes = np.asarray([d.size for d in sketch.decisions], dtype=np.int64)
            self._sizes[number, : len(sizes)] = sizes
            free = np.flatnonzero(sizes > 1)
            self._free[number, : len(free)] = free
        self._num_free = (self._sizes > 1).sum(axis=1)
        self._features = _FeatureTables(sketches)
        odd = np.random.default_rng(0).integers(0, 1 << 63, self.width + 1, dtype=np.uint64)
        self._factors: Keys = 2 * odd + np.uint64(1)

    def points(self, number: int, rows: IntArray) -> Points:
        """The programs of `rows [P, D]` of a sketch."""
        padding = ((0, 0), (0, self.width - rows.shape[1]))
        return Points(np.full(len(rows), number), np.pad(rows, padding))

    def random(self, count: int, rng: np.random.Generator) -> Points:
        """Random programs of random sketches."""
        numbers = np.sort(rng.integers(0, len(self._sketches), count))
        parts = [
            self.points(int(n), sample(self._sketches[n], int(c), rng).choices)
            for n, c in zip(*np.unique(numbers, return_counts=True), strict=True)
        ]
        return Points(numbers, np.concatenate([part.rows for part in parts]))

    def moved(self, points: Points, rng: np.random.Generator) -> Points:
        """The programs with another choice of one random decision (AutoTVM's `random_walk`)."""
        rows, number = points.rows.copy(), np.arange(len(points))
        able = number[self._num_free[points.sketch] > 0]
        sketch = points.sketch[able]
        column = self._free[sketch, rng.integers(0, self._num_free[sketch])]
        other = rng.integers(0, self._sizes[sketch, column] - 1)
        rows[able, column] = other + (other >= rows[able, column])
        return Points(points.sketch, rows)

    def features(self, points: Points) -> Floats:
        """`[P, F] float32`: the values of all decisions, NaN for those of other sketches."""
        return self._features.of(points)

    def keys(self, points: Points) -> Keys:
        """`[P] uint64`: a hash of each program's choices."""
        numbers = np.concatenate([points.sketch[:, None], points.rows], axis=1).astype(np.uint64)
        sums = ((numbers + np.uint64(1)) * self._factors).sum(axis=1, dtype=np.uint64)
        keys: Keys = sums ^ (sums >> np.uint64(29))
        return keys


class _FeatureTables:
    """Places of the features of each sketch's choices in one array of values."""

    def __init__(self, sketches: Sequence[Sketch]) -> None:
        arity: dict[str, int] = {}
        for decision in (d for sketch in sketches for d in sketch.decisions):
            arity[decision.name] = max(arity.get(decision.name, 0), decision.table.shape[1])
        first = dict(zip(arity, np.cumsum([len(sketches), *arity.values()]).tolist(), strict=False))
        shape = (len(sketches), len(sketches) + sum(arity.values()))
        # Values 0, 1 and NaN come first: the number of a sketch is a one-hot feature.
        values = [np.asarray([0, 1, np.nan], dtype=np.float32)]
        self._base = np.full(shape, 2)
        self._base[:, : len(sketches)] = np.eye(len(sketches), dtype=np.int64)
        self._stride, self._column = (
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.int64),
        )
        used = 3
        for number, sketch in enumerate(sketches):
            for column, decision in enumerate(sketch.decisions):
                width = decision.table.shape[1]
                places = slice(first[decision.name], first[decision.name] + width)
                self._base[number, places] = used + np.arange(width)
                self._stride[number, places] = width
                self._column[number, places] = column
                values.append(decision.table.astype(np.float32).ravel())
                used += decision.table.size
        self._values = np.concatenate(values)

    def of(self, points: Points) -> Floats:
        """`[P, F] float32`."""
        sketch, rows = points.sketch, points.rows
        places = self._base[sketch]
        if rows.shape[1]:
            choices = np.take_along_axis(rows, self._column[sketch], axis=1)
            places = places + choices * self._stride[sketch]
        values: Floats = self._values[places]
        return values
