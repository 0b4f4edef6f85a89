"""The derivation rules one by one, on states made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from definitions import HARDWARE, dag

from ansor.config import SketchConfig
from ansor.program.steps import CacheWrite, FuseConsumer, Inline, MultiLevelTile, RFactor
from ansor.sketch import rules
from ansor.sketch.rule import Derivation, RuleContext
from ansor.sketch.state import State, initial_state

CONTEXT = RuleContext(HARDWARE, SketchConfig())


def at(name: str, stage: str) -> State:
    """A state of definition `name` in which it is the turn of `stage`."""
    graph = dag(name)
    order = tuple(reversed(graph.order))
    return State(graph, order[order.index(stage) :])


def test_the_first_stage_is_the_output() -> None:
    assert initial_state(dag("conv2d")).current == "compute"


def test_always_inline_removes_the_stage_and_nothing_else_is_tried() -> None:
    (state,) = rules.always_inline(at("conv2d", "add"), CONTEXT).states
    assert state.steps == (Inline("add"),)
    assert "add" not in state.dag.stages
    assert state.current == "conv"
    assert rules.always_inline(at("conv2d", "add"), CONTEXT).exclusive


@pytest.mark.parametrize(
    ("name", "stage"), [("conv2d", "compute"), ("conv2d", "conv"), ("conv2d", "padded")]
)
def test_always_inline_spares(name: str, stage: str) -> None:
    assert rules.always_inline(at(name, stage), CONTEXT) == Derivation()


def test_padding_may_be_inlined_before_pooling() -> None:
    result = rules.inline_padding(at("max_pool2d", "pad_temp"), CONTEXT)
    assert [state.steps for state in result.states] == [(Inline("pad_temp"),)]
    assert not result.exclusive


def test_little_padding_is_no_choice() -> None:
    """Of the bytes of all buffers the padded one has a third."""
    pool = at("max_pool2d", "pad_temp")
    share = pool.dag.buffers["pad_temp"].num_bytes / pool.dag.num_bytes
    for least, expected in ((share * 1.01, True), (share * 0.99, False)):
        config = replace(CONTEXT.config, min_padded_share=least)
        result = rules.inline_padding(pool, replace(CONTEXT, config=config))
        assert result.exclusive is expected
        assert [state.steps for state in result.states] == [(Inline("pad_temp"),)]


def test_padding_is_not_inlined_into_a_tiled_stage() -> None:
    (tiled,) = rules.multi_level_tile(at("conv2d", "conv"), CONTEXT).states
    assert tiled.current == "padded"
    assert rules.inline_padding(tiled, CONTEXT) == Derivation()


RFACTOR_RULES = [(rules.rfactor_for_threads, False), (rules.rfactor_for_lanes, True)]


@pytest.mark.parametrize(("rule", "inner"), RFACTOR_RULES)
def test_rfactor_splits_the_reduction(rule: rules.Rule, inner: bool) -> None:
    result = rule(at("row_sum", "S"), CONTEXT)
    (state,) = result.states
    (step,) = state.steps
    assert isinstance(step, RFactor)
    assert (step.axis, step.inner, step.partial) == (1, inner, "S.rf")
    assert not result.exclusive  # leaving the reduction whole stays possible
    assert state.current == "S.rf"
    (decision,) = state.decisions
    assert (decision.table.prod(axis=1) == 4096).all()
    assert (decision.table[:, 1 if inner else 0] > 1).all()
    assert decision.stage == "S.rf"


def test_rfactor_never_makes_more_parts_than_the_machine_can_use() -> None:
    (outer,) = rules.rfactor_for_threads(at("row_sum", "S"), CONTEXT).states
    (inner,) = rules.rfactor_for_lanes(at("row_sum", "S"), CONTEXT).states
    assert outer.decisions[0].table[:, 0].max() <= 2 * CONTEXT.config.rfactor_max_per_core
    assert inner.decisions[0].table[:, 1].max() <= 4 * HARDWARE.lanes(4)


@pytest.mark.parametrize(("name", "stage"), [("matmul", "C"), ("max_pool2d", "pool_max")])
def test_rfactor_leaves_other_reductions_alone(name: str, stage: str) -> None:
    assert rules.rfactor_for_threads(at(name, stage), CONTEXT) == Derivation()
    assert rules.rfactor_for_lanes(at(name, stage), CONTEXT) == Derivation()


def test_a_sum_over_everything_gets_threads_and_lanes() -> None:
    (threads,) = rules.rfactor_for_threads(at("norm", "S"), CONTEXT).states
    (both,) = rules.rfactor_for_lanes(threads, CONTEXT).states
    assert [step.inner for step in both.steps if isinstance(step, RFactor)] == [False, True]
    assert [step.axis for step in both.steps if isinstance(step, RFactor)] == [1, 3]
    assert rules.rfactor_for_lanes(both, CONTEXT) == Derivation()  # no axis is split twice


def test_cache_write_visits_the_same_stage_again() -> None:
    (state,) = rules.add_cache_stage(at("matmul", "C"), CONTEXT).states
    assert state.steps == (CacheWrite("C", "C.cache"),)
    assert state.current == "C"
    assert state.dag.is_output("C.cache")
    assert rules.add_cache_stage(state, CONTEXT) == Derivation()


@pytest.mark.parametrize(("name", "stage"), [("conv2d", "conv"), ("conv2d", "compute")])
def test_cache_write_is_for_outputs_with_reuse(name: str, stage: str) -> None:
    assert rules.add_cache_stage(at(name, stage), CONTEXT) == Derivation()


def test_tile_fills_every_axis() -> None:
    result = rules.multi_level_tile(at("matmul", "C"), CONTEXT)
    (state,) = result.states
    assert state.steps == (MultiLevelTile("C", "SSRSRS", ("C.i", "C.j", "C.k")),)
    assert [d.table.shape[1] for d in state.decisions] == [4, 4, 2]
    assert [set(d.table.prod(axis=1)) for d in state.decisions] == [{32}, {48}, {24}]
    assert state.tiled == {"C"}
    assert result.exclusive


def test_tile_bounds_the_innermost_factor() -> None:
    context = RuleContext(HARDWARE, replace(CONTEXT.config, max_innermost_factor=8))
    (state,) = rules.multi_level_tile(at("matmul", "C"), context).states
    assert [d.table[:, -1].max() for d in state.decisions] == [8, 8, 24]


@pytest.mark.parametrize(("name", "stage"), [("softmax", "T_softmax_norm"), ("row_sum", "S")])
def test_tile_needs_reuse(name: str, stage: str) -> None:
    assert rules.multi_level_tile(at(name, stage), CONTEXT) == Derivation()


def test_fusion_tries_each_level() -> None:
    result = rules.multi_level_tile_with_fusion(at("matmul_relu", "C"), CONTEXT)
    fusions = [state.steps[-1] for state in result.states]
    assert fusions == [FuseConsumer("C", "compute", level) for level in (1, 2)]
    assert all(state.fused == {"compute"} for state in result.states)
    assert not result.exclusive


def test_a_cache_is_always_fused() -> None:
    (cached,) = rules.add_cache_stage(at("matmul", "C"), CONTEXT).states
    assert rules.multi_level_tile_with_fusion(cached, CONTEXT).exclusive


def test_fusion_needs_a_consumer_and_reuse() -> None:
    assert rules.multi_level_tile_with_fusion(at("matmul", "C"), CONTEXT) == Derivation()
    assert (
        rules.multi_level_tile_with_fusion(at("softmax", "T_softmax_exp"), CONTEXT) == Derivation()
    )


def test_skip_does_nothing() -> None:
    before = at("softmax", "T_softmax_exp")
    (after,) = rules.skip(before, CONTEXT).states
    assert after.steps == ()
    assert after.dag is before.dag
    assert after.remaining == before.remaining[1:]


def test_no_rule_alters_its_state() -> None:
    state = at("matmul_relu", "C")
    for rule in rules.CPU_RULES:
        rule(state, CONTEXT)
    assert state.steps == state.decisions == ()
    assert state.dag is dag("matmul_relu")
