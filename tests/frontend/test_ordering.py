"""Scans and sorting against NumPy; how functions that cannot be scheduled live in a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te

import ansor
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.operators import ordering, scan
from ansor.frontend.importers.operators.search_sorted import searchsorted
from ansor.frontend.optimization import optimize
from ansor.targets.target import resolve_target

Body = Callable[..., Any]
SHAPES = st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple)


def network(body: Body, *arrays: Any) -> tvm.IRModule:
    """A module of what `body` builds of the arrays."""
    bb = relax.BlockBuilder()
    types = [relax.TensorType(list(a.shape), str(a.dtype)) for a in arrays]
    variables = [relax.Var(f"x{i}", ty) for i, ty in enumerate(types)]
    with bb.function("main", variables):
        with bb.dataflow():
            found = body(bb, *variables)
            result = bb.emit_output(relax.Tuple(found) if isinstance(found, tuple) else found)
        bb.emit_func_output(result)
    return bb.get()


def run(body: Body, *arrays: Any) -> Any:
    target = resolve_target("native")
    return compile_model(optimize(network(body, *arrays), target), target)(*arrays)


def drawn(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


@settings(max_examples=12, deadline=None)
@given(SHAPES, st.data(), st.booleans(), st.booleans(), st.integers(0, 99))
def test_running_sums(shape: Any, data: Any, exclusive: bool, reverse: bool, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = drawn(shape, seed)
    given_way = np.flip(x, axis) if reverse else x
    expected = np.cumsum(given_way, axis, dtype=np.float32) - (given_way if exclusive else 0)
    expected = np.flip(expected, axis) if reverse else expected
    found = run(lambda bb, v: scan.cumsum(bb, v, axis, exclusive, reverse), x)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=10, deadline=None)
@given(SHAPES.filter(lambda shape: 0 not in shape), st.data(), st.booleans(), st.integers(0, 99))
def test_sorting_is_stable_with_nan_at_the_end(
    shape: Any, data: Any, descending: bool, seed: int
) -> None:
    torch = pytest.importorskip("torch")
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = drawn(shape, seed)
    x[x == 2] = np.nan
    x[x == -1] = -0.0
    values, places = run(lambda bb, v: ordering.sort(bb, v, axis, descending), x)
    expected = torch.sort(torch.from_numpy(x), dim=axis, descending=descending, stable=True)
    np.testing.assert_array_equal(values, expected.values.numpy())
    np.testing.assert_array_equal(places, expected.indices.numpy())


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", [*INTEGERS, "float16", "float64"])
def test_every_dtype_is_sorted(dtype: str) -> None:
    kind = np.dtype(dtype)
    ends = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    x = np.array([[3, ends.max, 0, ends.min, ends.max - 1, 3, 1]], kind)
    found = run(lambda bb, v: ordering.argsort(bb, v, 1), x)
    np.testing.assert_array_equal(found, np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
def test_running_extremes(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = drawn((3, 9, 2), 1)
    x[0, 4, 1], x[1, 3, 0], x[2, 0, 0], x[2, 5, 1] = np.nan, np.inf, -np.inf, -np.inf
    found = run(lambda bb, v: getattr(scan, name)(bb, v, 1), x)
    expected = getattr(torch, name)(torch.from_numpy(x), 1)
    pairs = zip(found, expected, strict=True) if name != "logcumsumexp" else [(found, expected)]
    for part, wanted in pairs:
        np.testing.assert_allclose(part, wanted.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("right", [False, True])
def test_places_in_a_sorted_sequence(right: bool) -> None:
    bounds, x = np.array([-2, 0, 0, 1], np.float32), drawn((4, 5), 2)
    side = "right" if right else "left"
    found = run(lambda bb, b, v: searchsorted(bb, b, v, right, "int64"), bounds, x)
    np.testing.assert_array_equal(found, np.searchsorted(bounds, x, side))


def twice(bb: relax.BlockBuilder, x: Any) -> Any:
    """Two equal running sums, with functions fused before and after."""
    for _ in range(2):
        shifted = bb.emit(relax.op.add(x, relax.const(1.0)))
        x = bb.emit(relax.op.nn.relu(scan.cumsum(bb, shifted, 1)))
    return ordering.sort(bb, x, 1, True)


def test_unscheduled_functions_run_are_reported_and_saved(tmp_path: Path) -> None:
    x = drawn((8, 16), 3)
    tuned = ansor.auto_schedule(network(twice, x), trials=0)
    expected = np.maximum(np.cumsum(np.maximum(np.cumsum(x + 1, 1), 0) + 1, 1), 0)
    places = np.argsort(-expected, 1, kind="stable")
    report = tuned.report()
    assert "cumsum" in report
    assert "argsort" in report
    tuned.save(tmp_path / "network")
    for values, order in (tuned(x), ansor.load(tmp_path / "network")(x)):
        np.testing.assert_allclose(values, np.take_along_axis(expected, places, 1), rtol=1e-5)
        np.testing.assert_array_equal(order, places)


@pytest.mark.parametrize("trials", [0, 2])
@pytest.mark.parametrize("shape", [(), (4,), (0,)])
def test_reductions_over_nothing(shape: tuple[int, ...], trials: int) -> None:
    p = te.placeholder((*shape, 0), name="p")
    k = te.reduce_axis((0, 0), name="k")
    q = te.compute(shape, lambda *at: te.sum(p(*at, k), axis=k), name="q")
    found = ansor.auto_schedule([p, q], trials=trials)(np.zeros((*shape, 0), np.float32))
    np.testing.assert_array_equal(found, np.zeros(shape, np.float32))


def test_a_network_reduces_nothing() -> None:
    def body(bb: relax.BlockBuilder, x: Any) -> Any:
        return bb.emit(relax.op.add(relax.op.sum(x, 1), relax.const(1.0)))

    found = run(body, np.zeros((3, 0), np.float32))
    np.testing.assert_array_equal(found, np.ones(3, np.float32))


@pytest.mark.parametrize("trials", [0, 2])
def test_no_dimensions(trials: int) -> None:
    s = te.placeholder((), name="s")
    t = te.compute((), lambda: s() * 2.0, name="t")
    tuned = ansor.auto_schedule([s, t], trials=trials)
    assert tuned(np.float32(3)) == 6
    assert tuned(np.array(4, np.float32)) == 8
