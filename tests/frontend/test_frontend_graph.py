"""What optimisation makes of a network: same results, fewer and larger functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.target import Target

from ansor.dag.from_tir.signature import signature
from ansor.errors import UnsupportedError
from ansor.frontend import (
    CompiledModel,
    ImportedModel,
    compile_model,
    extract_functions,
    import_model,
    optimize,
    random_inputs,
)
from ansor.frontend.distinct_functions import tir_calls


def relax_module(shape: tuple[int, ...], body: Any) -> tvm.IRModule:
    """A module whose main computes `body(x)`."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(body(x))
        builder.emit_func_output(result)
    return builder.get()


def kernel(*shape: int) -> relax.Expr:
    values = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    return relax.const(values)


def batch_norm(x: relax.Expr, channels: int) -> relax.Expr:
    rng = np.random.default_rng(8)
    vectors = [relax.const(rng.uniform(0.5, 1.5, channels).astype(np.float32)) for _ in range(4)]
    return relax.TupleGetItem(relax.op.nn.batch_norm(x, *vectors, axis=1, training=False), 0)


def plain_result(mod: tvm.IRModule, x: Any) -> Any:
    """Runs the module through TVM's own default pipeline, without any of our passes."""
    simple = relax.transform.DecomposeOpsForInference()(mod)
    machine = relax.VirtualMachine(tvm.compile(simple, Target({"kind": "llvm"})), tvm.cpu())
    entry = next(v.name_hint for v, f in mod.functions.items() if isinstance(f, relax.Function))
    return machine[entry](tvm.runtime.tensor(x)).numpy()


def names(mod: tvm.IRModule, target: Target) -> list[str]:
    return [function.name for function in extract_functions(optimize(mod, target))]


def test_optimised_network_computes_the_same(
    imported: ImportedModel, compiled: CompiledModel
) -> None:
    (x,) = random_inputs(imported.inputs, seed=5)
    expected = plain_result(imported.mod, x)
    assert np.abs(compiled(x) - expected).max() <= 1e-5 * np.abs(expected).max()


def test_functions_of_a_small_resnet(optimized: tvm.IRModule) -> None:
    found = [(function.name, function.weight) for function in extract_functions(optimized)]
    assert found == [
        ("transpose", 1),
        ("fused_conv2d_add_relu", 1),
        ("max_pool2d", 1),
        ("fused_conv2d1_add1_relu1", 1),
        ("fused_conv2d1_add1_add2_relu1", 1),
        ("fused_conv2d2_add3_relu2", 1),
        ("fused_conv2d4_add3", 1),
        ("fused_conv2d3_add3_add4_relu2", 2),
        ("fused_conv2d3_add3_relu2", 1),
        ("mean", 1),
        ("fused_matmul_add5", 1),
    ]


def test_resnet18_becomes_nineteen_functions(target: Target) -> None:
    functions = extract_functions(optimize(import_model("resnet18").mod, target))
    assert len(functions) == 19
    assert sum(function.weight for function in functions) == 24
    convs = [function for function in functions if "conv2d" in function.name]
    assert sum(function.weight for function in convs) == 20
    assert all("multiply" not in function.name for function in functions)
    assert [f.name for f in functions if "transpose" in f.name] == ["transpose"]


def test_weights_are_marked_and_transposed_at_compile_time(optimized: tvm.IRModule) -> None:
    functions = {function.name: function for function in extract_functions(optimized)}
    stem = functions["fused_conv2d_add_relu"]
    assert stem.constants == (1, 2)
    assert signature(stem.func)[1] == ((7, 7, 3, 8), "float32")  # HWIO
    dense = functions["fused_matmul_add5"].func
    assert signature(dense)[1] == ((16, 10), "float32")  # [K, N]


def test_every_call_is_counted(optimized: tvm.IRModule) -> None:
    total = sum(function.weight for function in extract_functions(optimized))
    assert total == len(list(tir_calls(optimized)))


def test_convolution_with_bias_absorbs_its_batch_norm(target: Target) -> None:
    def body(x: relax.Expr) -> relax.Expr:
        biased = relax.op.add(relax.op.nn.conv2d(x, kernel(4, 3, 3, 3)), kernel(1, 4, 1, 1))
        return relax.op.nn.relu(batch_norm(biased, 4))

    mod = relax_module((1, 3, 8, 8), body)
    assert "fused_conv2d_add_relu" in names(mod, target)
    check_result(mod, (1, 3, 8, 8), target)


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    # shapes of the data and of the kernel, both with its output channels wherever they belong
    "conv1d": ((2, 3, 9), (4, 3, 3)),
    "conv2d": ((2, 3, 8, 8), (4, 3, 3, 3)),
    "conv3d": ((2, 3, 4, 5, 6), (4, 3, 3, 3, 3)),
    "conv1d_transpose": ((2, 3, 9), (3, 4, 3)),
    "conv2d_transpose": ((2, 3, 8, 8), (3, 4, 3, 3)),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_every_kind_of_convolution_absorbs_its_batch_norm(
    name: str, bias: bool, target: Target
) -> None:
    shape, kernel_shape = CONVOLUTIONS[name]

    def body(x: relax.Expr) -> relax.Expr:
        convolved = getattr(relax.op.nn, name)(x, kernel(*kernel_shape))
        ones = [1] * (len(shape) - 2)
        return batch_norm(relax.op.add(convolved, kernel(1, 4, *ones)) if bias else convolved, 4)

    mod = relax_module(shape, body)
    assert all("multiply" not in function for function in names(mod, target))
    check_result(mod, shape, target)


def test_groups_of_a_transposed_convolution_keep_their_batch_norm(target: Target) -> None:
    """Its kernel knows output channels within a group only."""

    def body(x: relax.Expr) -> relax.Expr:
        return batch_norm(relax.op.nn.conv2d_transpose(x, kernel(4, 2, 3, 3), groups=2), 4)

    mod = relax_module((1, 4, 5, 5), body)
    check_result(mod, (1, 4, 5, 5), target)


def test_batch_norm_without_convolution_is_a_multiply_and_an_add(target: Target) -> None:
    mod = relax_module((1, 3, 8, 8), lambda x: batch_norm(x, 3))
    assert names(mod, target) == ["fused_multiply_add"]
    check_result(mod, (1, 3, 8, 8), target)


def test_clip_and_numbers_do_not_stop_channels_last(target: Target) -> None:
    def body(x: relax.Expr) -> relax.Expr:
        y = relax.op.nn.conv2d(x, kernel(4, 3, 1, 1))
        y = relax.op.clip(
            relax.op.add(y, relax.prim_value(tvm.tirx.FloatImm("float32", 3.0))), 0, 6
        )
        return relax.op.mean(relax.op.nn.conv2d(y, kernel(4, 4, 1, 1)), [2, 3])

    mod = relax_module((1, 3, 8, 8), body)
    assert names(mod, target) == [
        "transpose",
        "fused_conv2d_add_maximum_minimum",
        "conv2d1",
        "mean",
    ]
    check_result(mod, (1, 3, 8, 8), target)


def test_transpose_of_unit_axes_is_a_view(target: Target) -> None:
    def body(x: relax.Expr) -> relax.Expr:
        pooled = relax.op.mean(relax.op.nn.conv2d(x, kernel(4, 3, 1, 1)), [2, 3], keepdims=True)
        return relax.op.matmul(relax.op.reshape(pooled, (1, 4)), kernel(4, 5))

    mod = relax_module((1, 3, 8, 8), body)
    assert names(mod, target) == ["transpose", "conv2d", "mean", "matmul"]
    check_result(mod, (1, 3, 8, 8), target)


def check_result(mod: tvm.IRModule, shape: tuple[int, ...], target: Target) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    result = compile_model(optimize(mod, target), target)(x)
    np.testing.assert_allclose(result, plain_result(mod, x), rtol=1e-4, atol=1e-5)


def test_gpu_targets_are_channels_last_too(imported: ImportedModel, target: Target) -> None:
    gpu = Target({"kind": "cuda", "arch": "sm_90"})
    assert names(imported.mod, gpu) == names(imported.mod, target)


@pytest.mark.parametrize(
    ("attributes", "ours"),
    [
        ({"strides": 2, "padding": 1}, True),
        ({"strides": 1, "padding": 0}, True),
        ({"strides": (2, 4), "padding": (1, 3)}, True),
        ({"strides": 2, "padding": 1, "output_padding": 1}, True),
        ({"strides": 2, "padding": (0, 1, 2, 3)}, True),
        ({"strides": 3, "padding": 1}, False),
        ({"strides": 2, "dilation": 2}, False),
        ({"strides": 2, "groups": 2}, False),
    ],
)
def test_transposed_convolutions(attributes: dict[str, Any], ours: bool, target: Target) -> None:
    filters = 6 // attributes.get("groups", 1)

    def body(x: relax.Expr) -> relax.Expr:
        spread = relax.op.nn.conv2d_transpose(x, kernel(8, filters, 4, 4), **attributes)
        return relax.op.nn.relu(relax.op.nn.conv2d(spread, kernel(4, 6, 1, 1)))

    mod = relax_module((1, 8, 5, 7), body)
    check_result(mod, (1, 8, 5, 7), target)
    zeros = [f for f in extract_functions(optimize(mod, target)) if "dilat" in f.func.script()]
    assert bool(zeros) != ours


@pytest.mark.parametrize("rank", [1, 3])
def test_lines_and_volumes_are_channels_last(rank: int, target: Target) -> None:
    run = {1: relax.op.nn.conv1d, 3: relax.op.nn.conv3d}[rank]
    shape = (1, 3, *(6,) * rank)

    def body(x: relax.Expr) -> relax.Expr:
        y = relax.op.nn.relu(run(x, kernel(8, 3, *(3,) * rank), padding=1))
        return relax.op.nn.relu(run(y, kernel(4, 8, *(3,) * rank), strides=2))

    mod = relax_module(shape, body)
    found = names(mod, target)
    assert [name for name in found if "transpose" in name] == ["transpose", "transpose1"]
    check_result(mod, shape, target)


def test_operator_that_cannot_be_lowered_is_named(target: Target) -> None:
    mod = relax_module((4, 4), relax.op.nonzero)
    with pytest.raises(UnsupportedError, match="nonzero"):
        optimize(mod, target)
