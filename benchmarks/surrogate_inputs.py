"""The inputs of a surrogate's trees: features of a program's loops, its choices, and its steps.

The draft's estimates are left out, so the trees do not prefer searches that rank by the draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansor.features.columns import COLUMNS
from ansor.features.extract import extract
from ansor.features.profile import profile
from ansor.program.nest import build_nest
from ansor.program.sketch import Population

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Named columns of the programs of one sketch.

    Attributes:
        names: of the columns.
        values: `[P, C] float32`, C columns.
    """

    names: tuple[str, ...]
    values: Floats


def inputs_of(population: Population) -> Inputs:
    """Features of every stage (`ansor.features.columns`), the numbers in every hole, and a 1 for
    every step."""
    profiles = profile(build_nest(population))
    features = extract(population, profiles)
    names = [f"{stage}.{column}" for stage in profiles for column, _ in COLUMNS]
    blocks: list[npt.NDArray[np.generic]] = [features.reshape(len(population), -1)]
    for decision in population.sketch.decisions:
        chosen = population.values(decision.name)
        names += [f"{decision.name}[{i}]" for i in range(chosen.shape[1])]
        blocks.append(chosen)
    steps = dict.fromkeys(map(repr, population.sketch.steps))
    blocks.append(np.ones((len(population), len(steps))))
    values = np.concatenate(blocks, axis=1, dtype=np.float32, casting="unsafe")
    return Inputs((*names, *steps), values)


def aligned(inputs: Inputs, columns: Sequence[str]) -> Floats:
    """`[P, len(columns)] float32`: the named columns, not a number where a sketch lacks them."""
    place = {name: i for i, name in enumerate(inputs.names)}
    out: Floats = np.full((len(inputs.values), len(columns)), np.nan, dtype=np.float32)
    known = [i for i, name in enumerate(columns) if name in place]
    out[:, known] = inputs.values[:, [place[columns[i]] for i in known]]
    return out


def varying(parts: Sequence[Inputs]) -> tuple[str, ...]:
    """The columns of several sketches that tell programs apart."""
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    values = np.concatenate([aligned(part, names) for part in parts])
    first = values[:1]
    differs = ~((values == first) | (np.isnan(values) & np.isnan(first))).all(axis=0)
    return tuple(name for name, kept in zip(names, differs, strict=True) if kept)
