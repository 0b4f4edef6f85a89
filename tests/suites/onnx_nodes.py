"""ONNX's own node tests: each imported, compiled and compared with its expected results.

`python -m tests.suites.onnx_nodes [NAME …]` prints a line per test and a table. Operands that an
operator must know when it is compiled are bound as initializers first.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from ansor.errors import AnsorError
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize
from ansor.targets.target import resolve_target
from tests.suites.in_children import print_outcomes
from tests.suites.outcome import Outcome

LIMIT_S = 60.0  # of one test

# Operands that are shapes, axes, sizes, bounds or conditions, by operator.
KNOWN: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"),
            *("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Reshape"),
            *("Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "TopK", "CumSum", "CumProd"),
            *("OneHot", "Trilu", "Compress", "CenterCropPad", "AffineGrid", "SplitToSequence"),
        ),
        (1,),
    ),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow", "ConstantOfShape"), (0,)),
    "Col2Im": (1, 2),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Upsample": (1,),
}

# ONNX's reference and ONNX Runtime contradict each other here: the reference takes the fractional
# length of the result, ONNX Runtime the whole one. The import is compared with ONNX Runtime.
CONTRADICTED = frozenset(
    (
        "test_resize_downsample_scales_linear_align_corners",
        "test_resize_downsample_scales_cubic_align_corners",
    )
)

# The expected results hold rounding errors of a float32 transform where the exact result is zero.
# They are compared with an absolute tolerance of float32's precision of their largest element.
ROUNDED = frozenset(("test_dft_inverse", "test_dft_inverse_opset19"))


@cache
def tests() -> dict[str, Any]:
    """The tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {test.name: test for test in load_model_tests(kind="node")}


def cases() -> list[str]:
    """Names of all tests whose inputs and results are tensors of numbers."""
    return [n for n, test in tests().items() if _is_numeric(test)]


def _is_numeric(test: Any) -> bool:
    values = (*test.model.graph.input, *test.model.graph.output)
    kinds = {value.type.WhichOneof("value") for value in values}
    dtypes = {value.type.tensor_type.elem_type for value in values}
    return kinds == {"tensor_type"} and onnx.TensorProto.STRING not in dtypes


def run_case(name: str) -> Outcome:
    """The verdict on a test: the worst of its data sets."""
    test = tests()[name]
    for inputs, expected in test.data_sets:
        if name in CONTRADICTED:
            expected = _by_runtime(test.model, inputs)
        found = _run(name, test, inputs, expected)
        if found.verdict != "passed":
            return found
    return Outcome(name, "passed", "")


def _by_runtime(model: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """What ONNX Runtime computes."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in model.graph.input]
    results: Sequence[Any] = session.run(None, dict(zip(names, map(_array, inputs), strict=True)))
    return results


def _run(name: str, test: Any, inputs: Sequence[Any], expected: Sequence[Any]) -> Outcome:
    model, rest = bound(test.model, inputs)
    target = resolve_target("native")
    try:
        imported = import_model(model)
        compiled = compile_model(optimize(imported.mod, target), target)
        results = compiled(*rest)
    except AnsorError as error:
        return Outcome(name, "refused", str(error))
    except Exception as error:  # what is none of ours is what the suite is to find
        lines = (str(error).strip() or "no text").splitlines()
        return Outcome(name, "crashed", f"{type(error).__name__}: {lines[-1]}")
    found = results if isinstance(results, tuple) else (results,)
    detail = difference(found, expected, test.rtol, _absolute_tolerance(name, test, expected))
    return Outcome(name, "wrong" if detail else "passed", detail)


def _absolute_tolerance(name: str, test: Any, expected: Sequence[Any]) -> float:
    if name not in ROUNDED:
        return float(test.atol)
    largest = max(float(np.abs(_array(value)).max()) for value in expected)
    return float(np.finfo(np.float32).eps) * largest


def bound(model: Any, inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The model with what its operators must know as initializers, and the other inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    arrays = dict(zip((v.name for v in model.graph.input), map(_array, inputs), strict=False))
    chosen = _needed(model.graph, arrays)
    for name in sorted(chosen):
        made.graph.initializer.append(numpy_helper.from_array(arrays[name], name))
    real = [value for value in model.graph.input if value.name not in chosen]
    del made.graph.input[:]
    for value in real:
        kept = made.graph.input.add()
        kept.CopyFrom(value)
        _fix_shape(kept, arrays.get(value.name))
    return made, [arrays[value.name] for value in real]


def _array(value: Any) -> Any:
    is_proto = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_proto else np.asarray(value)


def _fix_shape(value: Any, array: Any) -> None:
    if array is None or value.type.WhichOneof("value") != "tensor_type":
        return
    shape = value.type.tensor_type.shape
    del shape.dim[:]
    shape.SetInParent()
    for extent in array.shape:
        shape.dim.add().dim_value = extent


def _needed(graph: Any, arrays: Mapping[str, Any]) -> set[str]:
    """Inputs at a place of `KNOWN`, or from which what is there is computed."""
    makers = {result: node for node in graph.node for result in node.output}
    found: set[str] = set()
    left = [
        node.input[place]
        for node in graph.node
        for place in KNOWN.get(node.op_type, ())
        if place < len(node.input)
    ]
    while left:
        name = left.pop()
        if name in arrays:
            found.add(name)
        elif name in makers and makers[name].op_type not in ("Shape", "Size"):
            left.extend(_operands(makers[name]))
    return found


def _operands(node: Any) -> list[str]:
    """What a node reads, in its branches too."""
    graphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return [
        *node.input,
        *(name for graph in graphs for inner in graph.node for name in inner.input),
    ]


def difference(found: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> str:
    """How results differ from the expected ones; empty if they do not."""
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}"
    for place, (got, want) in enumerate(zip(found, map(_array, expected), strict=True)):
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            return f"result {place}: {got.shape} {got.dtype} for {want.shape} {want.dtype}"
        text = _elements(got, want, rtol, atol)
        if text:
            return f"result {place}: {text}"
    return ""


def _elements(got: Any, want: Any, rtol: float, atol: float) -> str:
    if got.dtype.kind in "biu":
        differ = got != want
    else:
        # A 16-bit result is right to its own precision.
        least = {"float16": 2e-3, "bfloat16": 2e-2}.get(str(got.dtype), 0.0)
        a, b = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            differ = ~np.isclose(a, b, rtol=max(rtol, least), atol=atol, equal_nan=True)
    if not np.any(differ):
        return ""
    where = tuple(int(k) for k in np.argwhere(differ)[0])
    return (
        f"{int(differ.sum())} of {got.size} differ, at {where} {got[where]!r} for {want[where]!r}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_outcomes(run_case, sys.argv[1:] or cases(), LIMIT_S)
