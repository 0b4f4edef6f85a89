"""Definitions beyond the operator suite: tuples, several outputs, chains, every dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import te, tirx

from ansor.calls import auto_schedule
from ansor.config import FULL

TRIALS = 4  # a few programs of each; the search is tested elsewhere
# With so few trials the untuned program may win, and then no program of the search is compared.
CONFIG = replace(FULL, measure=replace(FULL.measure, untuned_s=0.0))
Expected = Callable[..., tuple[np.ndarray, ...]]


def argmax(rows: int = 48, columns: int = 300) -> tuple[list[Any], Expected]:
    """A reduction of pairs: index and value."""
    data = te.placeholder((rows, columns), name="data")
    k = te.reduce_axis((0, columns), name="k")

    def later(x: Any, y: Any) -> tuple[Any, Any]:
        first = x[1] >= y[1]
        return tirx.Select(first, x[0], y[0]), tirx.Select(first, x[1], y[1])

    def least(index: Any, value: Any) -> tuple[Any, Any]:
        return tirx.const(-1, index), te.min_value(value)

    best = te.comm_reducer(later, least, name="argmax")
    index, value = te.compute((rows,), lambda i: best((k.var, data[i, k]), axis=k), name="best")
    return [data, index, value], lambda x: (x.argmax(axis=1), x.max(axis=1))


def two_outputs() -> tuple[list[Any], Expected]:
    """One product, two results of it."""
    x, y, product = _product("float32")
    first = te.compute(product.shape, lambda i, j: te.exp(product[i, j] * 0.1), name="first")
    second = te.compute(product.shape, lambda i, j: product[i, j] * 2.0, name="second")
    return [x, y, first, second], lambda a, b: (np.exp(a @ b * 0.1), a @ b * 2)


def two_sums() -> tuple[list[Any], Expected]:
    """Two outputs that share nothing but their input."""
    data = te.placeholder((100,), name="data")
    k, m = te.reduce_axis((0, 100), name="k"), te.reduce_axis((0, 100), name="m")
    total = te.compute((1,), lambda _: te.sum(data[k], axis=k), name="total")
    least = te.compute((1,), lambda _: te.min(data[m], axis=m), name="least")
    return [data, total, least], lambda x: (x.sum(keepdims=True), x.min(keepdims=True))


def products_in_a_chain() -> tuple[list[Any], Expected]:
    x, y, product = _product("float32")
    z = te.placeholder((48, 40), name="z")
    k = te.reduce_axis((0, 48), name="m")
    middle = te.compute(product.shape, lambda i, j: te.max(product[i, j], 0.0), name="middle")
    out = te.compute((32, 40), lambda i, j: te.sum(middle[i, k] * z[k, j], axis=k), name="out")
    return [x, y, z, out], lambda a, b, c: (np.maximum(a @ b, 0) @ c,)


def product_of_elements() -> tuple[list[Any], Expected]:
    data = te.placeholder((16, 40), name="data")
    k = te.reduce_axis((0, 40), name="k")
    product = te.comm_reducer(lambda a, b: a * b, lambda t: tirx.const(1.0, t), name="product")
    out = te.compute((16,), lambda i: product(data[i, k], axis=k), name="out")
    return [data, out], lambda x: (x.prod(axis=1),)


def sum_to_a_scalar() -> tuple[list[Any], Expected]:
    data = te.placeholder((1000,), name="data")
    k = te.reduce_axis((0, 1000), name="k")
    out = te.compute((), lambda: te.sum(data[k], axis=k), name="out")
    return [data, out], lambda x: (np.asarray(x.sum()),)


def gather() -> tuple[list[Any], Expected]:
    """An index that is data."""
    data = te.placeholder((100, 64), name="data")
    where = te.placeholder((50,), "int32", name="where")
    out = te.compute((50, 64), lambda i, j: data[where[i], j], name="out")
    return [data, where, out], lambda x, i: (x[i],)


def _product(dtype: str, out: str = "") -> tuple[Any, Any, Any]:
    x, y = te.placeholder((32, 24), dtype, name="x"), te.placeholder((24, 48), dtype, name="y")
    k, out = te.reduce_axis((0, 24), name="k"), out or dtype
    product = te.compute(
        (32, 48), lambda i, j: te.sum(x[i, k].astype(out) * y[k, j].astype(out), axis=k), name="out"
    )
    return x, y, product


def matmul_of(dtype: str, out: str = "") -> Callable[[], tuple[list[Any], Expected]]:
    wide = "float64" if "float" in dtype else "int64"
    return lambda: (
        list(_product(dtype, out)),
        lambda a, b: (a.astype(wide) @ b.astype(wide),),
    )


CASES: dict[str, tuple[Callable[[], tuple[list[Any], Expected]], float]] = {
    "argmax": (argmax, 0.0),
    "two outputs": (two_outputs, 1e-5),
    "two sums": (two_sums, 1e-5),
    "a chain of products": (products_in_a_chain, 1e-5),
    "product of elements": (product_of_elements, 1e-5),
    "a scalar": (sum_to_a_scalar, 1e-5),
    "gather": (gather, 0.0),
    "float64": (matmul_of("float64"), 1e-12),
    "float16": (matmul_of("float16"), 2e-2),
    "float16 to float32": (matmul_of("float16", "float32"), 1e-5),
    "bfloat16 to float32": (matmul_of("bfloat16", "float32"), 1e-5),
    "bfloat16": (matmul_of("bfloat16"), 1e-1),
    "int8 to int32": (matmul_of("int8", "int32"), 0.0),
    "uint8 to int32": (matmul_of("uint8", "int32"), 0.0),
    "int32": (matmul_of("int32"), 0.0),
    "int64": (matmul_of("int64"), 0.0),
}


def random(spec: Any, rng: np.random.Generator) -> np.ndarray:
    dtype = np.dtype(spec.dtype)
    if "float" in spec.dtype:
        return rng.standard_normal(spec.shape).astype(dtype)
    return rng.integers(0, 50, spec.shape).astype(dtype)


# The normal suite has one definition of each kind of these.
SLOW = {"two sums", "product of elements", "float64", "float16", "bfloat16 to float32", "int64"}
SLOW |= {"uint8 to int32", "float16 to float32"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in CASES]
)
def test_tuned_programs_compute_what_numpy_does(name: str) -> None:
    make, tolerance = CASES[name]
    tensors, expected = make()
    model = auto_schedule(tensors, trials=TRIALS, config=CONFIG)
    (task,) = model.tasks
    assert task.sketch != "untuned", task.note
    assert task.trials > 0
    rng = np.random.default_rng(0)
    arrays = [random(spec, rng) for spec in model.compiled.inputs]
    found = model(*arrays)
    found = found if isinstance(found, tuple | list) else (found,)
    wanted = expected(*arrays)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(np.abs(b).max(), 1e-30)
