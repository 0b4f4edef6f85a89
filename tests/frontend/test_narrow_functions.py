"""Which functions of a network multiply by weights of 7 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tvm import relax, te
from tvm.target import Target

from ansor.dag.from_tir.narrow import narrow_parameters, with_narrow
from ansor.frontend import extract_functions, import_model, optimize
from ansor.frontend.rewrite import constant

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.frontend.quantized_networks import quantized, residual_network

SIZE, WEIGHT = 4, 1


def narrow_in(*weights: np.ndarray | None, declared: bool = False) -> frozenset[int]:
    """Of a function that is called once with each array; without one, with an input."""
    shape = (SIZE, SIZE)
    x, w = (te.placeholder(shape, dtype, n) for dtype, n in (("uint8", "x"), ("int8", "w")))
    y = te.compute(shape, lambda *i: x(*i).astype("int32") * w(*i).astype("int32"), "y")
    func = with_narrow(te.create_prim_func([x, w, y]), {WEIGHT} if declared else ())
    builder = relax.BlockBuilder()
    inputs = [relax.Var(n, relax.TensorType(shape, d)) for n, d in (("x", "uint8"), ("w", "int8"))]
    with builder.function("main", inputs):
        with builder.dataflow():
            callee = builder.add_func(func.without_attr("global_symbol"), "multiply")
            made = [
                builder.emit(
                    relax.call_tir(
                        callee,
                        relax.Tuple([inputs[0], inputs[1] if w is None else constant(w)]),
                        relax.TensorType(shape, "int32"),
                    )
                )
                for w in weights
            ]
            out = builder.emit_output(relax.Tuple(made))
        builder.emit_func_output(out)
    (found,) = extract_functions(builder.get())
    return narrow_parameters(found.func)


def filled(value: int) -> np.ndarray:
    return np.full((SIZE, SIZE), value, np.int8)


def test_the_weights_of_all_calls_count() -> None:
    assert narrow_in(filled(64), filled(-64)) == {WEIGHT}
    assert narrow_in(filled(64), filled(65)) == frozenset()
    assert narrow_in(filled(-128)) == frozenset()
    assert narrow_in(filled(1), None) == frozenset()


def test_a_promise_counts_where_values_are_not_known() -> None:
    assert narrow_in(None, declared=True) == {WEIGHT}
    assert narrow_in(None, filled(100), declared=True) == frozenset()
    assert narrow_in(None) == frozenset()


@pytest.mark.parametrize("reduce_range", [False, True])
def test_weights_that_are_quantised_to_seven_bits(
    reduce_range: bool, target: Target, tmp_path: Path
) -> None:
    model = quantized(residual_network(), tmp_path, reduce_range=reduce_range)
    for function in extract_functions(optimize(import_model(model).mod, target)):
        known = {p for p in function.constants if str(function.func.params[p].dtype) == "int8"}
        assert narrow_parameters(function.func) == (known if reduce_range else frozenset())
