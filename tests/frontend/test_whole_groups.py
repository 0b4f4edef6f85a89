"""Reductions that no group of an instruction divides get zeros: programs and networks are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from definitions import HARDWARE
from sampling import sample
from tvm import relax, te

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.features.legality import legal
from ansor.frontend import compile_model, optimize
from ansor.frontend.distinct_functions import extract_functions
from ansor.frontend.passes.groups.function import in_whole_groups
from ansor.frontend.passes.groups.network import with_whole_groups
from ansor.lowering.lower import lower
from ansor.program.dot_instructions import DOT_INSTRUCTIONS
from ansor.program.layout import packed_arrays
from ansor.program.nest import build_nest
from ansor.program.program import Program
from ansor.program.sketch import Sketch
from ansor.program.steps import DotProducts
from ansor.targets.build import compile_function
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.targets.target import resolve_target, target_text
from ansor.workloads import Workload, build

Array = Any
PLAIN = tvm.target.Target({"kind": "llvm"})  # without any of the instructions
NATIVE = target_text(resolve_target("native"), 2)
CONFIG = SketchConfig(unroll_steps=(0, 16), max_unrolled_statements=16)
SIZES = {
    "matmul": {"rows": 5, "columns": 40, "depth": 9},
    "batch_matmul": {"batch": 3, "rows": 5, "columns": 16, "depth": 9},
    "conv2d": {"height": 7, "width": 9, "channels": 3, "filters": 16, "stride": 2},
}


def group_size(dtypes: tuple[str, str, str]) -> int | None:
    return next((each.elements for each in DOT_INSTRUCTIONS if each.takes(dtypes)), None)


def legal_program(sketch: Sketch) -> Program:
    drawn = sample(sketch, 128, np.random.default_rng(0))
    allowed = np.flatnonzero(legal(build_nest(drawn), HARDWARE, CONFIG))
    return drawn.program(int(allowed[0]))


def longer(array: Array, param: Any) -> Array:
    """An array with zeros behind its ends."""
    sizes = zip(param.shape, array.shape, strict=True)
    return np.pad(array, [(0, int(size) - had) for size, had in sizes])


def run(func: Any, program: Program, definition: Workload) -> tuple[Array, Array]:
    """The results of a program and of NumPy."""
    inputs = definition.inputs(np.random.default_rng(1))
    expected = definition.reference(*inputs)
    arrays = [longer(a, p) for a, p in zip(inputs, func.params, strict=False)]
    named = dict(zip(read_dag(func).buffers, arrays, strict=False))
    tensors = map(tvm.runtime.tensor, packed_arrays(program, named).values())
    out = tvm.runtime.tensor(np.zeros_like(expected))
    module: Any = compile_function(lower(func, program), NATIVE)
    module(*tensors, out)
    return out.numpy(), expected


@pytest.mark.parametrize("constants", [(), (1,)], ids=["activations", "weights"])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
@pytest.mark.parametrize("name", SIZES)
def test_programs_use_the_instruction_and_are_right(
    name: str, dtype: str, constants: tuple[int, ...]
) -> None:
    definition = build(name, dtype=dtype, **SIZES[name])
    func = in_whole_groups(definition.func, constants, group_size)
    for sketch in CPU_SEARCH.sketches(read_dag(func, constants), HARDWARE, CONFIG):
        program = legal_program(sketch)
        assert any(isinstance(step, DotProducts) for step in program.steps)
        found, expected = run(func, program, definition)
        if dtype == "int8":
            assert np.array_equal(found, expected)
        else:  # one rounding to bfloat16, and the order of the sums
            difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
            assert (difference <= 2**-7 * np.abs(expected.astype(np.float64)) + 1e-3).all()


def test_zeros_join_the_padding_of_an_image() -> None:
    definition = build("conv2d", dtype="bfloat16", **SIZES["conv2d"])
    dag = read_dag(in_whole_groups(definition.func, (1,), group_size), (1,))
    assert list(dag.stages) == list(read_dag(definition.func).stages)
    assert dag.stages["padded"].nonzero == ((1, 1, 8), (2, 1, 10), (3, 0, 3))
    assert dag.buffers["weight"].shape == (3, 3, 4, 16)


def product(left: str, right: str, total: str, twice: bool = False) -> Any:
    """Rows of 9 by columns; or by themselves."""
    a, b = te.placeholder((9, 9), left, name="a"), te.placeholder((9, 9), right, name="b")
    k = te.reduce_axis((0, 9), name="k")
    other = a if twice else b
    return te.create_prim_func(
        [
            *((a,) if twice else (a, b)),
            te.compute(
                (9, 9),
                lambda i, j: te.sum(a[i, k].astype(total) * other[k, j].astype(total), axis=k),
                name="c",
            ),
        ]
    )


@pytest.mark.parametrize(
    "func",
    [
        product("float32", "float32", "float32"),
        product("int8", "int8", "int8"),
        product("int8", "int8", "int32", twice=True),
        build("depthwise_conv2d", height=5, width=5, channels=3).func,
        build("matmul", dtype="int8", rows=5, columns=8, depth=12).func,
    ],
    ids=["float32", "narrow sum", "square", "depthwise", "whole groups"],
)
def test_other_functions_stay_as_they_are(func: Any) -> None:
    assert in_whole_groups(func, (), group_size) is func


def test_a_weight_that_another_stage_reads_keeps_its_shape() -> None:
    a, w = te.placeholder((5, 9), "uint8", name="a"), te.placeholder((9, 8), "int8", name="w")
    k = te.reduce_axis((0, 9), name="k")
    wide = te.compute(
        (5, 8),
        lambda i, j: te.sum(a[i, k].astype("int32") * w[k, j].astype("int32"), axis=k),
        name="c",
    )
    last = te.compute((5, 8), lambda i, j: wide[i, j] + w[i, j].astype("int32"), name="d")
    func = in_whole_groups(te.create_prim_func([a, w, last]), (1,), group_size)
    dag = read_dag(func, (1,))
    assert dag.buffers["w"].shape == (9, 8)
    assert dag.buffers["w_groups"].shape == (12, 8)


def quantised_layer(x: Any, weight: Array) -> Any:
    op, scale = relax.op, relax.const(np.float32(0.5))
    data = op.dequantize(x, scale, relax.const(np.uint8(7)), -1)
    columns = relax.const(np.zeros(weight.shape[1], np.int8))
    scales = relax.const(np.full(weight.shape[1], 0.25, np.float32))
    return op.matmul(data, op.dequantize(relax.const(weight), scales, columns, 1))


def layer(depth: int) -> tuple[tvm.IRModule, Array]:
    """A module with one product of `[5, depth]` uint8, and its weight."""
    weight = np.random.default_rng(0).integers(-128, 128, (depth, 8)).astype(np.int8)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((5, depth), "uint8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.normalize(quantised_layer(x, weight)))
        builder.emit_func_output(out)
    return builder.get(), weight


@pytest.mark.parametrize("depth", [1, 9, 10, 11])
def test_a_network_is_exact_and_keeps_its_names(depth: int) -> None:
    mod, weight = layer(depth)
    plain = with_whole_groups(optimize(mod, PLAIN), ())
    changed = with_whole_groups(plain, DOT_INSTRUCTIONS)
    assert [f.name for f in extract_functions(changed)] == [
        f.name for f in extract_functions(plain)
    ]
    shapes = [tuple(map(int, p.shape)) for p in extract_functions(changed)[0].func.params]
    assert shapes[1] == (-(-depth // 4) * 4, 8)
    x = np.random.default_rng(1).integers(0, 256, (5, depth)).astype(np.uint8)
    expected = (x.astype(np.int64) - 7) @ weight.astype(np.int64) * 0.125
    assert np.array_equal(compile_model(changed, PLAIN)(x), expected.astype(np.float32))


def test_without_instructions_a_network_stays_as_it_is() -> None:
    mod = optimize(layer(9)[0], PLAIN)
    assert with_whole_groups(mod, ()) is mod
