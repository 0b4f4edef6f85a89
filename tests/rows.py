"""Populations whose values are written down, for numbers computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ansor.program.sketch import Population, Sketch

Values = Mapping[str, tuple[int, ...]]


def population_of(sketch: Sketch, programs: Sequence[Values]) -> Population:
    """One program per mapping of holes to values; a hole left out takes its first choice."""
    choices = np.zeros((len(programs), len(sketch.decisions)), dtype=np.int32)
    for row, values in enumerate(programs):
        assert set(values) <= set(sketch.column)
        for column, decision in enumerate(sketch.decisions):
            if decision.name in values:
                found = decision.find(values[decision.name])
                assert found is not None, f"{decision.name} cannot be {values[decision.name]}"
                choices[row, column] = found
    return Population(sketch, choices)
