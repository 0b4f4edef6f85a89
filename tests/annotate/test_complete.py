"""Completing a structure: the order of replay, holes and decisions, compute locations."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from definitions import HARDWARE, NAMES, dag, sketches

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.program.location import Locations
from ansor.program.loop_structure import own_loops
from ansor.program.sketch import Sketch
from ansor.program.steps import (
    CacheRead,
    CacheWrite,
    ComputeAt,
    DotProducts,
    FuseConsumer,
    Initialise,
    Inline,
    MoveAxis,
    MultiLevelTile,
    Parallel,
    PrefetchConsumer,
    PrefetchOperands,
    PrefetchPackedRows,
    RegisterTile,
    RFactor,
    SkipPadding,
    SplitAxis,
    Step,
    StripMine,
    Unroll,
    Vectorize,
)
from ansor.sketch.state import State
from ansor.targets.cpu.search import CPU_SEARCH

PHASES = (
    (Inline, CacheRead, CacheWrite, DotProducts, SplitAxis, MoveAxis, RFactor),
    (MultiLevelTile, StripMine),
    (Parallel,),
    (FuseConsumer,),
    (RegisterTile,),
    (ComputeAt,),
    (),  # what is fused into a stage that has its place now
    (Vectorize,),
    (Unroll,),
    (Initialise,),
    (SkipPadding,),
    (PrefetchPackedRows, PrefetchOperands, PrefetchConsumer),
)


def phase_of(step: Step, inner: set[str]) -> int:
    """Number of the phase of a step, where the stages of `inner` are tiled inside others."""
    if isinstance(step, FuseConsumer) and step.stage in inner:
        return PHASES.index(())
    return next(number for number, kinds in enumerate(PHASES) if isinstance(step, kinds))


def holes(sketch: Sketch) -> list[str]:
    """Holes that the steps name, in order."""
    found: list[str] = []
    for step in sketch.steps:
        fields = dataclasses.asdict(step)
        found += [fields["hole"]] if fields.get("hole") is not None else []
        found += [hole for hole in fields.get("holes", ()) if hole]
    return found


def steps_of(sketch: Sketch, kind: type) -> list:
    return [step for step in sketch.steps if isinstance(step, kind)]


@pytest.fixture(params=NAMES)
def all_sketches(request: pytest.FixtureRequest) -> tuple[Sketch, ...]:
    return sketches(request.param)


def test_steps_come_in_the_order_of_their_replay(all_sketches: tuple[Sketch, ...]) -> None:
    for sketch in all_sketches:
        inner = {step.stage for step in steps_of(sketch, RegisterTile)}
        phases = [phase_of(step, inner) for step in sketch.steps]
        assert phases == sorted(phases)


def test_every_hole_has_a_decision_and_every_decision_a_hole(
    all_sketches: tuple[Sketch, ...],
) -> None:
    for sketch in all_sketches:
        names = [decision.name for decision in sketch.decisions]
        assert len(set(names)) == len(names)
        assert set(holes(sketch)) == set(names)
        assert len(holes(sketch)) == len(names)


def test_every_decision_is_owned_by_a_stage(all_sketches: tuple[Sketch, ...]) -> None:
    for sketch in all_sketches:
        assert {decision.stage for decision in sketch.decisions} <= set(sketch.dag.stages)


def test_every_stage_is_a_root_or_has_a_host(all_sketches: tuple[Sketch, ...]) -> None:
    for sketch in all_sketches:
        roots = {step.stage for step in steps_of(sketch, Unroll) if step.hole is not None}
        attached = {step.stage for step in steps_of(sketch, ComputeAt)}
        attached |= {step.consumer for step in steps_of(sketch, FuseConsumer)}
        assert roots | attached == set(sketch.dag.stages)
        assert not roots & attached
        assert {step.host for step in steps_of(sketch, ComputeAt)} <= roots


def test_reductions_are_initialised_and_spatial_stages_vectorised(
    all_sketches: tuple[Sketch, ...],
) -> None:
    for sketch in all_sketches:
        stages = sketch.dag.stages.values()
        initialised = [step.stage for step in steps_of(sketch, Initialise)]
        assert sorted(initialised) == sorted(s.name for s in stages if s.reduce)
        vectorised = [step.stage for step in steps_of(sketch, Vectorize)]
        assert sorted(vectorised) == sorted(s.name for s in stages if s.spatial)


def test_consumers_are_located_before_their_producers(all_sketches: tuple[Sketch, ...]) -> None:
    for sketch in all_sketches:
        located = [step.stage for step in steps_of(sketch, ComputeAt)]
        order = [sketch.dag.order.index(stage) for stage in located]
        assert order == sorted(order, reverse=True)


def test_padding_may_be_computed_down_to_the_outer_reduction_of_a_tiled_convolution() -> None:
    for sketch in sketches("conv2d"):
        (step,) = steps_of(sketch, ComputeAt)
        assert (step.stage, step.host) == ("padded", "conv")
        column = sketch.column[step.hole]
        # two spatial levels of four axes, then three reductions; zero is the root
        assert sketch.decisions[column].table[:, 0].tolist() == list(range(2 * 4 + 3 + 1))


def test_parallel_chooses_among_all_prefixes_of_the_spatial_loops() -> None:
    sketch = sketches("matmul")[0]
    (step,) = steps_of(sketch, Parallel)
    assert sketch.decisions[sketch.column[step.hole]].table[:, 0].tolist() == [0, 1, 2]


def test_unroll_steps_are_those_of_the_config() -> None:
    config = SketchConfig(unroll_steps=(0, 8))
    for sketch in sketches("conv2d", config):
        for step in steps_of(sketch, Unroll):
            assert sketch.decisions[sketch.column[step.hole]].table[:, 0].tolist() == [0, 8]


def test_vectors_are_as_long_as_the_config_says() -> None:
    config = SketchConfig(max_vector_bytes=32)
    for sketch in sketches("softmax", config):
        assert {step.lanes for step in steps_of(sketch, Vectorize)} == {8}
        for step in steps_of(sketch, StripMine):
            if step.hole is not None:
                table = sketch.decisions[sketch.column[step.hole]].table
                assert table[:, 1].max() <= 8
                assert len(np.unique(table.prod(axis=1))) == 1


def test_vectors_that_are_gathered_are_one_register_long() -> None:
    for sketch in sketches("softmax"):
        for step in steps_of(sketch, Vectorize):
            stage = sketch.dag.stages[step.stage]
            gathered = {"T_softmax_maxelem", "T_softmax_expsum"}  # read along the reduction
            lanes = 16 if stage.name in gathered else 64
            assert step.lanes == lanes


def test_a_structure_without_steps_is_completed_too() -> None:
    sketch = complete(State(dag("conv2d"), ()), HARDWARE, SketchConfig())
    assert steps_of(sketch, MultiLevelTile) == []
    assert {step.stage for step in steps_of(sketch, ComputeAt)} == {"padded", "conv", "add"}
    assert {step.host for step in steps_of(sketch, ComputeAt)} == {"compute"}


def test_a_stage_with_two_consumers_is_located_only_if_one_host_serves_both() -> None:
    plain = complete(State(dag("softmax"), ()), HARDWARE, SketchConfig())
    locations = Locations(plain.dag, plain.roles)
    assert locations.host["T_softmax_expsum"] == "T_softmax_norm"
    assert locations.host["T_softmax_exp"] == "T_softmax_norm"
    assert locations.host["T_softmax_maxelem"] == "T_softmax_norm"
    assert "T_softmax_norm" not in locations.host


def test_an_untiled_host_takes_stages_in_its_outer_spatial_loops() -> None:
    plain = complete(State(dag("max_pool2d"), ()), HARDWARE, SketchConfig())
    locations = Locations(plain.dag, plain.roles)
    assert locations.deepest("pool_max") == 4
    loops = own_loops(plain.dag.stages["pool_max"], plain.roles.shape.get("pool_max"))
    assert not any(loop.reduce for loop in loops[:4])
    assert loops[4].reduce


SMALL = replace(HARDWARE, cache_bytes=(3 << 10, 4 << 10, 1 << 20), line_bytes=128)


def test_prefetches_take_their_sizes_from_the_machine() -> None:
    found = CPU_SEARCH.sketches(dag("matmul_relu"), SMALL, SketchConfig())
    operands = [step for sketch in found for step in steps_of(sketch, PrefetchOperands)]
    consumers = [step for sketch in found for step in steps_of(sketch, PrefetchConsumer)]
    assert operands
    assert consumers
    assert {step.line_bytes for step in (*operands, *consumers)} == {128}
    assert {step.far_bytes for step in (*operands, *consumers)} == {4 << 10}
    assert {step.tile_bytes for step in operands} == {128}
    assert {step.tile_bytes for step in consumers} == {1 << 10}


def test_operands_that_fit_the_second_cache_are_not_prefetched() -> None:
    large = replace(HARDWARE, cache_bytes=(48 << 10, 1 << 30, 1 << 31))
    for sketch in CPU_SEARCH.sketches(dag("matmul_relu"), large, SketchConfig()):
        assert steps_of(sketch, PrefetchOperands) == []


def test_every_fused_consumer_and_every_packed_copy_is_prefetched(
    all_sketches: tuple[Sketch, ...],
) -> None:
    for sketch in all_sketches:
        consumers = [step.consumer for step in steps_of(sketch, FuseConsumer)]
        copies = [step.copy for step in steps_of(sketch, CacheRead)]
        assert [step.consumer for step in steps_of(sketch, PrefetchConsumer)] == consumers
        assert [step.stage for step in steps_of(sketch, PrefetchPackedRows)] == copies
