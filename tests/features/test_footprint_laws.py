"""Footprints of random programs against an enumeration of what they touch, and their laws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, sketches
from hypothesis import given, settings
from hypothesis import strategies as st
from touched_elements import touched

from ansor.annotate.sample import sample
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.profile import AccessProfile, StageProfile, profile
from ansor.program.nest import LoopNest, build_nest
from ansor.program.sketch import Sketch
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.workloads import build

SMALL = {  # small enough to be enumerated
    "matmul": {"rows": 12, "columns": 16, "depth": 8, "relu": 1},
    "batch_matmul": {"batch": 2, "rows": 4, "columns": 8, "depth": 6},
    "conv2d": {"height": 6, "width": 4, "channels": 4, "filters": 8},
    "depthwise_conv2d": {"height": 6, "width": 6, "channels": 8},
    "max_pool2d": {"height": 8, "width": 8, "channels": 8},
    "softmax": {"rows": 6, "columns": 12},
}
GAPS = {"conv2d": {"height": 8, "width": 8, "channels": 2, "filters": 4, "stride": 2}}
ROWS = 12


def small_sketches(name: str, sizes: dict[str, int]) -> list[Sketch]:
    config = SketchConfig()
    dag = read_dag(build(name, **sizes).func)
    return CPU_SEARCH.sketches(dag, HARDWARE, config)


def outside_allocation(nest: LoopNest, stage: str, buffer: str, row: int) -> int:
    """Loops of a root stage around the place where it shares an intermediate buffer with others."""
    dag = nest.population.sketch.dag
    users = {
        other.name
        for other in dag.stages.values()
        for access in (*other.reads, *other.writes)
        if access.buffer == buffer and other.name != stage
    }
    if dag.buffers[buffer].kind != "intermediate":
        return 0
    hosts = nest.population.sketch.roles.host
    if {hosts.get(user) for user in users} != {stage}:
        return 0  # shared with a stage elsewhere: allocated at the root
    return min(int(nest.stages[user].position[row]) for user in users)


def accesses_of_roots(nest: LoopNest) -> Iterator[tuple[StageProfile, int]]:
    for made in profile(nest).values():
        if made.nest.num_host == 0:
            yield from ((made, number) for number in range(len(made.accesses)))


def check_row(nest: LoopNest, made: StageProfile, number: int, row: int, exact: bool) -> int:
    """Compares one access of one program at every depth; returns the number of comparisons."""
    stage = made.nest.stage
    access = (*stage.reads, *stage.writes)[number]
    frozen = outside_allocation(nest, stage.name, access.buffer, row)
    depths = [0, *(loop + 1 for loop in made.active)]
    for depth, outer in enumerate(depths):
        seen = touched(nest, stage.name, access, row, max(outer, frozen))
        said = made.accesses[number].footprint[depth, row]
        assert said == (seen.distinct if exact else seen.boxed)
        assert exact or said >= min(seen.distinct, seen.boxed)
    return len(depths)


@pytest.mark.parametrize("name", SMALL)
def test_footprints_equal_the_elements_touched(name: str) -> None:
    rng, compared = np.random.default_rng(0), 0
    for sketch in small_sketches(name, SMALL[name]):
        nest = build_nest(sample(sketch, ROWS, rng))
        for made, number in accesses_of_roots(nest):
            for row in range(ROWS):
                # A stride of two leaves gaps; inlined padding reads only inside the buffer.
                exact = name != "max_pool2d" and not made.nest.stage.has_branch
                compared += check_row(nest, made, number, row, exact)
    assert compared > 200


@pytest.mark.parametrize("name", GAPS)
def test_a_stride_counts_the_gaps_it_leaves(name: str) -> None:
    rng = np.random.default_rng(1)
    for sketch in small_sketches(name, GAPS[name]):
        nest = build_nest(sample(sketch, ROWS, rng))
        for made, number in accesses_of_roots(nest):
            for row in range(ROWS):
                check_row(nest, made, number, row, exact=False)


def all_accesses(name: str, seed: int) -> Iterator[tuple[LoopNest, StageProfile, AccessProfile]]:
    rng = np.random.default_rng(seed)
    for sketch in sketches(name):
        nest = build_nest(sample(sketch, 16, rng))
        for made in profile(nest).values():
            yield from ((nest, made, access) for access in made.accesses)


@settings(deadline=None)  # the first example of a name builds its sketches
@given(st.sampled_from(NAMES), st.integers(0, 2**31))
def test_footprints_obey_their_laws(name: str, seed: int) -> None:
    for nest, made, access in all_accesses(name, seed):
        footprint = access.footprint
        known = all(i is not None for a in made.nest.stage.reads for i in a.indices)
        assert (np.diff(footprint, axis=0) <= 0).all(), "inside fewer loops, no less is touched"
        if known:
            assert (footprint[-1] == 1).all(), "one execution touches one element"
        sizes = [s for s in access.buffer.shape if isinstance(s, int)]
        if len(sizes) == len(access.buffer.shape):
            assert (footprint <= np.prod(sizes)).all(), "no more than there is"
        assert footprint.shape == (len(made.active) + 1, nest.size)


@settings(deadline=None)  # the first example of a name builds its sketches
@given(st.sampled_from(NAMES), st.integers(0, 2**31))
def test_runs_and_lines_obey_their_laws(name: str, seed: int) -> None:
    for _, _, access in all_accesses(name, seed):
        assert (access.run >= 1).all()
        assert (access.run <= access.footprint).all()
        lines = access.lines(64)
        assert (lines * 64 >= access.bytes * (1 - 1e-6)).all(), "lines hold all that is touched"
        assert (lines <= access.footprint).all(), "an element touches one line"


@pytest.mark.parametrize("name", NAMES)
def test_every_output_is_written_whole(name: str) -> None:
    """The iterations of a stage's loops, those of its host included, reach all of its output."""
    for nest, made, access in all_accesses(name, seed=0):
        if access.is_write and access.buffer.kind == "output":
            sizes = [s for s in access.buffer.shape if isinstance(s, int)]
            assert (access.footprint[0] == np.prod(sizes)).all(), made.nest.stage.name
            assert nest.size == 16
