"""Chains of reductions computed tile by tile: who hosts, who is tiled for registers only."""

from __future__ import annotations

import numpy as np
import pytest
from definitions import HARDWARE, dag, sketches

from ansor.config import DagConfig, SketchConfig
from ansor.dag import edit
from ansor.dag.chains import ends_chain, whole_axes
from ansor.dag.graph import ComputeDAG
from ansor.dag.operands import batch_axes
from ansor.dag.predicates import has_data_reuse
from ansor.program.sketch import Sketch
from ansor.program.steps import FuseConsumer, MultiLevelTile, RegisterTile
from ansor.sketch.chain_rules import attach_register_tile, tile_host
from ansor.sketch.rule import RuleContext
from ansor.sketch.state import initial_state

CONTEXT = RuleContext(HARDWARE, SketchConfig())


def folded(name: str) -> ComputeDAG:
    """The graph of a definition with its tables of constants inlined."""
    return initial_state(dag(name)).dag


def of(sketch: Sketch, kind: type) -> list[str]:
    return [step.stage for step in sketch.steps if isinstance(step, kind)]


def test_indices_of_inlined_tables_are_folded() -> None:
    stages = folded("winograd_conv2d").stages
    names = {name: {stages[name].axes[a].name for a in stages[name].folded} for name in stages}
    assert names["tall"] == {"a", "i"}
    assert names["spectrum"] == {"b", "j"}
    assert names["short"] == {"u", "p"}
    assert names["tiles"] == {"v", "q"}
    assert not names["product"]
    assert not names["out"]


def test_a_large_table_is_not_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "DAG", DagConfig(max_table=8))
    assert not any(stage.folded for stage in folded("winograd_conv2d").stages.values())


def test_transforms_are_not_tiled_and_the_product_between_them_is() -> None:
    graph = folded("winograd_conv2d")
    assert [name for name in graph.order if has_data_reuse(graph, name)] == ["product"]


def test_only_the_end_of_several_reductions_hosts() -> None:
    hosts = {name for s in sketches("winograd_conv2d") for name in of(s, MultiLevelTile)}
    assert hosts == {"out", "product"}  # not the transforms after the product, which are located
    assert not any(ends_chain(dag("conv2d"), name) for name in dag("conv2d").order)
    assert not any(ends_chain(dag("softmax"), name) for name in dag("softmax").order)


def test_axes_that_a_transform_makes_at_once_stay_whole() -> None:
    graph = folded("winograd_conv2d")
    names = {graph.stages["out"].axes[a].name for a in whole_axes(graph, "out")}
    assert names == {"u", "v"}
    (derived,) = tile_host(initial_state(dag("winograd_conv2d")), CONTEXT).states
    tables = {decision.name: decision.table for decision in derived.decisions}
    assert tables["out.u"].tolist() == tables["out.v"].tolist() == [[1, 1, 4]]
    assert len(tables["out.f"]) > 1


def test_axes_without_reuse_are_not_tiled_for_registers() -> None:
    assert {
        dag("batch_matmul").stages["C"].axes[a].name for a in batch_axes(dag("batch_matmul"), "C")
    } == {"n"}
    assert not batch_axes(dag("matmul"), "C")
    graph = folded("winograd_conv2d")
    assert {graph.stages["product"].axes[a].name for a in batch_axes(graph, "product")} == {
        "a",
        "b",
    }
    for sketch in sketches("batch_matmul"):
        for decision in sketch.decisions:
            if decision.name == "C.n":
                assert (decision.table[:, -1] == 1).all()


def test_producers_of_a_tiled_host_are_tiled_for_registers() -> None:
    found = {
        (tuple(of(s, MultiLevelTile)), tuple(of(s, RegisterTile)))
        for s in sketches("winograd_conv2d")
    }
    assert found == {(("out",), ("product",)), (("product",), ())}


def test_a_producer_of_a_tiled_reduction_may_have_either_tile() -> None:
    fused = [s for s in sketches("separable_conv2d") if of(s, FuseConsumer)]
    assert any(of(s, RegisterTile) == ["deep"] for s in fused)
    assert any("deep" in of(s, MultiLevelTile) for s in fused)


def test_what_ends_a_depthwise_convolution_is_computed_with_its_tiles() -> None:
    for sketch in sketches("separable_conv2d"):
        assert sketch.dag.stages["flat"].ops.float_cmp == 0  # not once for each filter
        fused = {step.stage for step in sketch.steps if isinstance(step, FuseConsumer)}
        assert set(of(sketch, RegisterTile)) & {"deep"} <= fused


def test_nothing_is_tiled_for_registers_without_a_tiled_host() -> None:
    for name in ("matmul", "conv2d", "softmax", "norm", "depthwise_conv2d"):
        assert not any(of(sketch, RegisterTile) for sketch in sketches(name))
    state = initial_state(dag("matmul"))
    assert not attach_register_tile(state, CONTEXT).states


def test_limits_of_a_register_tile_fit_the_axes() -> None:
    for sketch in sketches("winograd_conv2d"):
        sizes = {axis.name: axis.size for axis in sketch.dag.stages["product"].axes}
        for decision in sketch.decisions:
            if decision.name.endswith(".registers"):
                axis = decision.name.split(".")[1]
                assert decision.table.max() <= sizes[axis]
                assert np.unique(decision.table).size == decision.size
