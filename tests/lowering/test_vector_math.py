"""The polynomials that replace library calls: accuracy over the whole range, and their switch."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule

from ansor.lowering.vector_math import vector_math
from ansor.targets.build import compile_function

Floats = npt.NDArray[np.float32]
SIZE = 4096


def compiled(name: str, lanes: int, exact: bool) -> object:
    x = te.placeholder((SIZE,), name="x")
    func = te.create_prim_func([x, te.compute((SIZE,), lambda i: getattr(tirx, name)(x[i]), "y")])
    module = tvm.IRModule({"main": func})
    sch = Schedule(module)
    if lanes > 1:
        _, inner = sch.split(sch.get_loops(sch.get_sblock("y"))[0], [None, lanes])
        sch.vectorize(inner)
    return compile_function(sch.mod["main"], "llvm", exact=exact)


def run(name: str, values: Floats, lanes: int = 16, exact: bool = False) -> Floats:
    x = np.resize(values, SIZE).astype("float32")
    arguments = [tvm.runtime.tensor(x), tvm.runtime.tensor(np.zeros_like(x))]
    compiled(name, lanes, exact)["main"](*arguments)  # type: ignore[index]
    return arguments[1].numpy()[: len(values)]


def reference(name: str, values: Floats) -> npt.NDArray[np.float64]:
    exact = {
        "exp": math.exp,
        "tanh": math.tanh,
        "erf": math.erf,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    }[name]
    return np.array([exact(float(v)) for v in values])


@pytest.mark.parametrize("lanes", [1, 16, 64])
@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "erf"])
def test_relative_error_is_a_few_units_in_the_last_place(name: str, lanes: int) -> None:
    rng = np.random.default_rng(0)
    spread = np.concatenate([rng.uniform(-20, 20, 2000), rng.normal(0, 0.2, 2000)])
    values = spread.astype("float32")
    error = np.abs(run(name, values, lanes) - reference(name, values))
    assert (error / np.abs(reference(name, values))).max() < 1.5e-6


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-np.inf, 0.0), (np.inf, np.inf), (-200.0, 0.0), (200.0, np.inf), (0.0, 1.0)],
)
def test_exp_at_the_ends_of_its_range(value: float, expected: float) -> None:
    assert run("exp", np.array([value], dtype="float32"))[0] == expected


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "erf"])
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(run(name, np.array([np.nan], dtype="float32"))[0])


@pytest.mark.parametrize(("name", "limit"), [("tanh", 1.0), ("erf", 1.0), ("sigmoid", 1.0)])
def test_saturation(name: str, limit: float) -> None:
    assert run(name, np.array([80.0, np.inf], dtype="float32")) == pytest.approx(limit)


def test_a_reference_keeps_the_library_functions() -> None:
    values = np.linspace(-5, 5, 1000, dtype="float32")
    same = run("exp", values, exact=True)
    assert np.array_equal(same, run("exp", values, lanes=1, exact=True))
    assert not np.array_equal(same, run("exp", values))


def test_the_switch_closes_again() -> None:
    with vector_math():
        pass
    with nullcontext():
        x = te.placeholder((4,), name="x")
        func = te.create_prim_func([x, te.compute((4,), lambda i: tirx.exp(x[i]), "y")])
        text = tvm.compile(tvm.IRModule({"main": func}), "llvm").mod.inspect_source("ll")
    assert "llvm.exp" in text or "expf" in text
