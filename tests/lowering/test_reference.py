"""What programs are checked against is the definition, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from definitions import FLOAT32, workload
from tvm import te, tirx
from tvm.script import tirx as T

from ansor.lowering.reference import in_float64, reference_of


def run(
    func: Any, inputs: list[np.ndarray], shape: tuple[int, ...], dtype: Any = np.float32
) -> np.ndarray:
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    out = tvm.runtime.tensor(np.full(shape, np.nan, dtype=dtype))
    tvm.compile(module, "llvm")["main"](*[tvm.runtime.tensor(x) for x in inputs], out)
    return out.numpy()


def run64(func: Any, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return run(func, [x.astype(np.float64) for x in inputs], shape, np.float64)


@pytest.mark.parametrize("name", FLOAT32)
def test_it_computes_exactly_what_was_written(name: str) -> None:
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    written = run(definition.func, inputs, shape)
    np.testing.assert_array_equal(run(reference_of(definition.func).func, inputs, shape), written)


def test_the_definition_is_left_alone() -> None:
    func = workload("conv2d").func
    before = func.script()
    reference_of(func)
    assert func.script() == before


@pytest.mark.parametrize(("name", "iterations"), [("matmul", 5000), ("conv2d", 100), ("conv1d", 1)])
def test_a_sample_is_part_of_the_whole(name: str, iterations: float) -> None:
    """The sampled elements are exact, spread over the output, and include the last one."""
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    whole = run(reference_of(definition.func).func, inputs, shape)
    part = run(reference_of(definition.func, iterations).func, inputs, shape)
    made = ~np.isnan(part)
    assert 0 < made.sum() < made.size
    assert made.reshape(-1)[-1]
    np.testing.assert_array_equal(part[made], whole[made])
    rows = made.reshape(-1, shape[-1])
    assert (rows.any(axis=1) == rows.all(axis=1)).all()


def test_what_is_read_later_is_computed_whole() -> None:
    """Softmax: sums and exponentials are needed by every output."""
    definition = workload("softmax")
    inputs = definition.inputs(np.random.default_rng(0))
    shape = definition.reference(*inputs).shape
    whole = run(reference_of(definition.func).func, inputs, shape)
    part = run(reference_of(definition.func, 40).func, inputs, shape)
    made = ~np.isnan(part)
    assert 0 < made.sum() < made.size
    np.testing.assert_array_equal(part[made], whole[made])


@pytest.mark.parametrize("iterations", [100, 5000])
def test_what_is_partial_is_told(iterations: float) -> None:
    definition = workload("matmul")
    assert not reference_of(definition.func).rows
    assert not reference_of(definition.func, 1e9).rows
    sample = reference_of(definition.func, iterations)
    inputs = definition.inputs(np.random.default_rng(0))
    part = run(sample.func, inputs, definition.reference(*inputs).shape)
    assert set(sample.rows) == {2}
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(part).any(axis=1)), sample.rows[2])


def test_what_is_written_elsewhere_is_computed_whole() -> None:
    """Rows of a transposed output are not those of the axes that it is computed over."""

    @T.prim_func(s_tir=True)
    def transposed(a: T.Buffer((16, 8), "float32"), out: T.Buffer((8, 16), "float32")) -> None:
        for i, j in T.grid(16, 8):
            with T.sblock("transpose"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                out[v_j, v_i] = a[v_i, v_j] * 2.0

    values = np.random.default_rng(0).random((16, 8), dtype=np.float32)
    sample = reference_of(transposed, 32)
    assert not sample.rows
    np.testing.assert_array_equal(run(sample.func, [values], (8, 16)), values.T * 2)


@pytest.mark.parametrize("name", FLOAT32)
def test_in_float64_rounding_cannot_be_seen(name: str) -> None:
    """Against NumPy's float32 reference the error is NumPy's; against itself in float32, ours."""
    definition = workload(name)
    inputs = definition.inputs(np.random.default_rng(0))
    expected = definition.reference(*inputs)
    exact = run64(reference_of(in_float64(definition.func)).func, inputs, expected.shape)
    assert exact.dtype == np.float64
    assert np.abs(exact - expected).max() <= 1e-5 * np.abs(expected).max()


def test_a_long_sum_is_right_only_in_float64() -> None:
    """In float32 one more does not change sixteen million and more."""
    a = te.placeholder((1 << 24, 2), name="A")
    k = te.reduce_axis((0, 1 << 24), name="k")
    total = te.compute((2,), lambda i: te.sum(a[k, i] + 1.0, axis=k), name="B")
    func = te.create_prim_func([a, total])
    ones = [np.full((1 << 24, 2), 0.5, dtype=np.float32)]
    assert (run(reference_of(func).func, ones, (2,)) != 1.5 * (1 << 24)).all()
    assert (run64(reference_of(in_float64(func)).func, ones, (2,)) == 1.5 * (1 << 24)).all()


def test_what_looks_at_bits_stays_as_it_is() -> None:
    a = te.placeholder((4,), name="A")
    bits = te.compute((4,), lambda i: tirx.reinterpret("int32", a[i]), name="B")
    func = te.create_prim_func([a, bits])
    assert in_float64(func) is func
    half = te.placeholder((4,), dtype="float16", name="A")
    doubled = te.create_prim_func([half, te.compute((4,), lambda i: half[i] + half[i], name="B")])
    assert {str(p.dtype) for p in in_float64(doubled).params} == {"float16"}
