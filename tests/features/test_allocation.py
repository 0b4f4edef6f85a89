"""Intermediate buffers are as small in the profile as TVM makes them."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from definitions import NAMES, sketches, workload
from tvm import s_tir, tirx

from ansor.annotate.sample import sample
from ansor.features.allocation import allocations
from ansor.features.span import views_of
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.program.program import Program


def compacted(func: tirx.PrimFunc, program: Program) -> dict[str, tuple[int, ...]]:
    """Shape of each intermediate buffer once TVM has shrunk it."""
    passes = [
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.CompactBufferAllocation(),
    ]
    module = tvm.IRModule({"main": lower(func, program)})
    done = tvm.transform.Sequential(passes)(module)["main"]
    found: dict[str, tuple[int, ...]] = {}

    def visit(node: object) -> None:
        if isinstance(node, tirx.SeqStmt):
            for part in node.seq:
                visit(part)
        elif isinstance(node, s_tir.SBlockRealize):
            for buffer in node.block.alloc_buffers:
                found[str(buffer.name)] = tuple(int(size) for size in buffer.shape)
            visit(node.block.body)
        elif hasattr(node, "body"):
            visit(node.body)

    visit(done.body)
    return found


# Read under the padding's condition, through a remainder: TVM keeps all of it.
KEPT_WHOLE = {("transposed_conv2d", "data_dilate")}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_those_of_the_lowered_program(name: str) -> None:
    func, rng = workload(name).func, np.random.default_rng(0)
    compared = 0
    for sketch in sketches(name):
        population = sample(sketch, 4, rng)
        nest = build_nest(population)
        sizes = {k: a.sizes for k, a in allocations(nest, views_of(nest)).items()}
        for row in range(len(population)):
            shapes = compacted(func, population.program(row))
            for buffer, expected in shapes.items():
                key = buffer.replace("_global", ".cache")
                if (name, key) in KEPT_WHOLE:
                    continue
                if key in sizes and len(sizes[key]) == len(expected):
                    assert [int(size[row]) for size in sizes[key]] == list(expected), buffer
                    compared += 1
    assert compared or not any(len(s.dag.order) > 1 for s in sketches(name))
