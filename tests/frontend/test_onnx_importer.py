"""ONNX models: imported ones have ONNX Runtime's results, and unsupported operators are named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from click.testing import CliRunner
from tvm.target import Target

import ansor
from ansor.cli.main import main
from ansor.cli.model_argument import parse_model
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend import (
    InputSpec,
    compile_model,
    extract_functions,
    import_model,
    optimize,
    random_inputs,
)

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT = TensorProto.FLOAT
RNG = np.random.default_rng(0)
IMAGE = (1, 4, 8, 8)
Node = helper.make_node


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


def network(
    nodes: list[Any],
    weights: Mapping[str, Any],
    shape: tuple[int | str, ...] = IMAGE,
    opset: int = 17,
    dtype: int = FLOAT,
) -> Any:
    """A model of one input "x" and one output "y"."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8)
    )


def relu(shape: tuple[int | str, ...] = (2, 3), dtype: int = FLOAT) -> Any:
    return network([Node("Relu", ["x"], ["y"])], {}, shape, dtype=dtype)


CONV = Node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4)
WEIGHTS = {"w": floats(4, 4, 3, 3), "b": floats(4)}
NORM = {"s": floats(4), "t": floats(4), "m": floats(4), "v": np.abs(floats(4))}
SIX = {"lo": np.float32(0), "hi": np.float32(6)}
LAST = Node("Conv", ["d", "w"], ["y"])

# Nodes, weights and shape of the input.
CASES: dict[str, tuple[list[Any], dict[str, Any], tuple[int, ...]]] = {
    "batch_norm": (
        [CONV, Node("BatchNormalization", ["c", "s", "t", "m", "v"], ["d"]), LAST],
        {**WEIGHTS, **NORM},
        IMAGE,
    ),
    "clip": ([CONV, Node("Clip", ["c", "lo", "hi"], ["d"]), LAST], {**WEIGHTS, **SIX}, IMAGE),
    "clip_without_bounds": (
        [CONV, Node("Clip", ["c", "", "nan"], ["d"]), LAST],
        {**WEIGHTS, "nan": np.float32(np.nan)},
        IMAGE,
    ),
    "max_min": (
        [CONV, Node("Max", ["c", "lo"], ["e"]), Node("Min", ["e", "hi"], ["d"]), LAST],
        {**WEIGHTS, **SIX},
        IMAGE,
    ),
    "sum": ([CONV, Node("Sum", ["c", "x", "c"], ["d"]), LAST], WEIGHTS, IMAGE),
    "classifier": (
        [
            CONV,
            Node("Relu", ["c"], ["r"]),
            Node("GlobalAveragePool", ["r"], ["p"]),
            Node("Flatten", ["p"], ["f"]),
            Node("Gemm", ["f", "dense", "bias"], ["g"], transB=1, alpha=0.5, beta=2.0),
            Node("Softmax", ["g"], ["y"]),
        ],
        {**WEIGHTS, "dense": floats(5, 4), "bias": floats(5)},
        IMAGE,
    ),
    "concat_split": (
        [
            CONV,
            Node("Split", ["c"], ["e", "f"], axis=-3),
            Node("Concat", ["f", "e"], ["d"], axis=-3),
            LAST,
        ],
        WEIGHTS,
        IMAGE,
    ),
    "reshape": ([Node("Reshape", ["x", "shape"], ["y"])], {"shape": integers(0, -1, 4)}, IMAGE),
    "transpose_matmul": (
        [Node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), Node("MatMul", ["t", "w"], ["y"])],
        {"w": floats(6, 5)},
        (2, 6, 4),
    ),
    "layer_norm": (
        [Node("LayerNormalization", ["x", "s", "t"], ["y"])],
        {"s": floats(8), "t": floats(8)},
        (2, 3, 8),
    ),
    "layer_norm_of_images": (
        [CONV, Node("LayerNormalization", ["c", "s", "t"], ["y"], axis=1)],
        {**WEIGHTS, "s": floats(4, 8, 8), "t": floats(4, 8, 8)},
        IMAGE,
    ),
    "gelu": (
        [
            Node("Div", ["x", "root"], ["a"]),
            Node("Erf", ["a"], ["e"]),
            Node("Add", ["e", "one"], ["f"]),
            Node("Mul", ["x", "f"], ["g"]),
            Node("Mul", ["g", "half"], ["y"]),
        ],
        {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
        (2, 8),
    ),
    "gather": ([Node("Gather", ["x", "i"], ["y"], axis=-1)], {"i": integers(-1, 0)}, (2, 8)),
    "gather_one": ([Node("Gather", ["x", "i"], ["y"], axis=-2)], {"i": np.int64(-1)}, (2, 3, 4)),
    "squeeze": ([Node("Squeeze", ["x", "a"], ["y"])], {"a": integers(-2)}, (2, 1, 4)),
    "dropout": ([Node("Dropout", ["x"], ["y", "mask"])], {}, (2, 3)),
    "computed_shape": (
        [
            Node("Shape", ["x"], ["s"]),
            Node("Gather", ["s", "zero"], ["n"]),
            Node("Unsqueeze", ["n", "axis"], ["u"]),
            Node("Concat", ["u", "rest"], ["shape"], axis=0),
            Node("Reshape", ["x", "shape"], ["y"]),
        ],
        {"zero": np.int64(0), "axis": integers(0), "rest": integers(-1)},
        IMAGE,
    ),
    "computed_bounds": (
        [
            Node("Shape", ["x"], ["s"]),
            Node("Slice", ["s", "one", "two"], ["n"]),
            Node("Div", ["n", "two"], ["h"]),
            Node("Slice", ["x", "zero", "h", "one"], ["y"]),
        ],
        {"zero": integers(0), "one": integers(1), "two": integers(2)},
        (2, 8),
    ),
}


def runtime_results(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, dict(inputs)))


def check(model: Any, target: Target, examples: Any = None) -> tvm.IRModule:
    """Compares a model of one result with ONNX Runtime; returns it optimised."""
    imported = import_model(model, examples)
    optimized = optimize(imported.mod, target)
    inputs = random_inputs(imported.inputs, seed=3)
    result = compile_model(optimized, target)(*inputs)
    named = {spec.name: array for spec, array in zip(imported.inputs, inputs, strict=True)}
    expected = runtime_results(model, named)[0]
    assert np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max()
    return optimized


def names(mod: tvm.IRModule) -> list[str]:
    return [function.name for function in extract_functions(mod)]


# --- what comes in --------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_operators_compute_what_onnx_runtime_computes(case: str, target: Target) -> None:
    nodes, weights, shape = CASES[case]
    check(network(nodes, weights, shape), target)


@pytest.mark.parametrize("case", ["batch_norm", "clip", "clip_without_bounds", "max_min", "sum"])
def test_nothing_is_transposed_between_convolutions(case: str, target: Target) -> None:
    nodes, weights, shape = CASES[case]
    found = names(optimize(import_model(network(nodes, weights, shape)).mod, target))
    assert len(found) == 4
    assert [name for name in found if "transpose" in name] == ["transpose", "transpose1"]


def test_an_old_model_lists_weights_among_its_inputs(target: Target) -> None:
    nodes = [
        Node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        Node("BatchNormalization", ["c", "s", "t", "m", "v"], ["d"]),
        Node("Clip", ["d"], ["e"], min=0.0, max=6.0),
        Node("Slice", ["e"], ["f"], starts=[0], ends=[2], axes=[1]),
        Node("ReduceMean", ["f"], ["g"], axes=[2, 3], keepdims=0),
        Node("Softmax", ["g"], ["y"]),
    ]
    model = network(nodes, {**WEIGHTS, **NORM, "w": floats(40, 4, 3, 3)}, opset=9)
    for name in ("b", *NORM):
        replace_weight(model, name, floats(40) ** 2)
    model.ir_version = 3
    for tensor in model.graph.initializer:
        declared = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        model.graph.input.append(declared)
    assert import_model(model).inputs == (InputSpec("x", IMAGE, "float32"),)
    check(model, target)


def replace_weight(model: Any, name: str, value: Any) -> None:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(value, name))


def test_functions_of_a_model_are_inlined(target: Target) -> None:
    model = network([Node("Twice", ["x"], ["y"], domain="mine")], {}, (2, 3))
    body = [Node("Add", ["a", "a"], ["z"])]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("mine", "Twice", ["a"], ["z"], body, opsets))
    check(model, target)


def test_several_results(target: Target) -> None:
    model = relu()
    model.graph.node.append(Node("Neg", ["x"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, (2, 3)))
    x = floats(2, 3)
    first, second = compile_model(optimize(import_model(model).mod, target), target)(x)
    np.testing.assert_array_equal(first, np.maximum(x, 0))
    np.testing.assert_array_equal(second, -x)


def test_the_caller_keeps_the_model_as_it_was() -> None:
    model = network(CASES["computed_shape"][0], CASES["computed_shape"][1], ("n", 4, 8, 8))
    before = model.SerializeToString()
    import_model(model, np.zeros(IMAGE, np.float32))
    assert model.SerializeToString() == before


@pytest.mark.parametrize("kind", [bytes, str, Path])
def test_bytes_and_files(kind: type, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(relu(), path)
    source = path.read_bytes() if kind is bytes else kind(path)
    assert import_model(source).inputs == (InputSpec("x", (2, 3), "float32"),)


@pytest.fixture
def split_file(tmp_path: Path) -> Path:
    """A model whose large weight is in the file "weights" beside it."""
    path = tmp_path / "model.onnx"
    model = network([Node("MatMul", ["x", "w"], ["y"])], {"w": floats(64, 64)}, (2, 64))
    onnx.save(model, path, save_as_external_data=True, location="weights")
    return path


def test_weights_in_another_file(split_file: Path, target: Target) -> None:
    imported = import_model(split_file)
    x = floats(2, 64)
    result = compile_model(optimize(imported.mod, target), target)(x)
    (weight,) = onnx.load(split_file).graph.initializer
    expected = x @ numpy_helper.to_array(weight)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_the_command_takes_a_file(tmp_path: Path) -> None:
    path, x = tmp_path / "model.onnx", floats(2, 3)
    onnx.save(relu(), path)
    arguments = ["tune", str(path), "--trials", "0", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    tuned = ansor.load(tmp_path / "out" / "model.ansor")
    np.testing.assert_array_equal(tuned(x), np.maximum(x, 0))


# --- dynamic shapes -------------------------------------------------------------------------


def test_examples_fix_dynamic_dimensions(target: Target) -> None:
    nodes, weights, shape = CASES["computed_shape"]
    model = network(nodes, weights, ("batch", *shape[1:]))
    check(model, target, [np.zeros((3, *shape[1:]), np.float32)])


def test_dynamic_dimensions_are_named() -> None:
    message = r"example_inputs=None: .*'x': dimension 0 is dynamic \(batch\).*1 is dynamic \(rows\)"
    with pytest.raises(ArgumentError, match=message):
        import_model(relu(("batch", "rows", 3)))


def test_an_input_without_a_shape() -> None:
    model = relu()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ArgumentError, match="input 'x' has no known shape"):
        import_model(model)
    imported = import_model(model, np.zeros((4, 5), np.float32))
    assert imported.inputs == (InputSpec("x", (4, 5), "float32"),)


def test_a_symbol_has_one_size() -> None:
    model = relu(("n", "n"))
    with pytest.raises(ArgumentError, match=r"=\(2, 3\): the shape must be \(2, 2\)"):
        import_model(model, np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (np.zeros((2, 4), np.float32), r"example_inputs\[0\]=\(2, 4\): the shape must be \(2, 3\)"),
        (np.zeros(3, np.float32), "input 'x' has 2 dimensions"),
        (np.zeros((2, 3)), r"example_inputs\[0\]='float64': the dtype must be float32"),
        ([], "example_inputs=0: give 1 arrays: x"),
        ("x", r"example_inputs\[0\]='str': give NumPy arrays or torch tensors"),
    ],
)
def test_wrong_examples(examples: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        import_model(relu(("n", 3)), examples)


# --- broken files ---------------------------------------------------------------------------


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    path = str(tmp_path / "model.onnx")
    for read in (import_model, parse_model):
        with pytest.raises(ArgumentError, match=r"model\.onnx': no such file"):
            read(path)
    (tmp_path / "model.onnx").mkdir()
    with pytest.raises(ArgumentError, match="cannot be read"):
        import_model(path)


def test_a_file_that_is_not_onnx(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("hello world")
    with pytest.raises(ArgumentError, match=r"model\.onnx': is no ONNX model, or is cut short"):
        import_model(path)
    path.write_text("")
    with pytest.raises(ArgumentError, match=r"model\.onnx': is no valid ONNX model"):
        import_model(path)


def test_a_file_that_is_cut_short() -> None:
    data = network(CASES["classifier"][0], CASES["classifier"][1]).SerializeToString()
    for size in (10, len(data) // 2, len(data) - 3):
        with pytest.raises(ArgumentError, match="'bytes': is no"):
            import_model(data[:size])


def test_another_kind_of_path() -> None:
    with pytest.raises(ArgumentError, match=r"the path of a \.onnx file"):
        import_model(Path("model.pb"))


def test_weights_that_are_missing(split_file: Path) -> None:
    whole = (split_file.parent / "weights").read_bytes()
    (split_file.parent / "weights").write_bytes(whole[:100])
    with pytest.raises(ArgumentError, match="put the files of its weights beside it, complete"):
        import_model(split_file)
    (split_file.parent / "weights").unlink()
    with pytest.raises(ArgumentError, match=r"model\.onnx': put the files of its weights beside"):
        import_model(split_file)
    for source in (split_file.read_bytes(), onnx.load(split_file, load_external_data=False)):
        with pytest.raises(ArgumentError, match=r"its weights w are in other files; give the path"):
            import_model(source)


def test_a_weight_that_is_not_there_or_too_short() -> None:
    model = network([Node("MatMul", ["x", "w"], ["y"])], {"w": floats(64, 64)}, (2, 64))
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-8]
    with pytest.raises(ArgumentError, match=r"no valid ONNX model .*name: w.*too small"):
        import_model(model)
    del model.graph.initializer[0]
    with pytest.raises(ArgumentError, match=r"no valid ONNX model .*input 'w' of node"):
        import_model(model)


def test_onnx_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.frontend.importers.importer.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"needs onnx: pip install 'ansor\[onnx\]'"):
        import_model("model.onnx")


# --- what is not supported ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Node("Det", ["x"], ["y"], name="det"), r"operator Det \(node 'det'\)"),
        (Node("Det", ["x"], ["y"]), r"operator Det \(the node that makes 'y'\)"),
        (
            Node("Mish", ["x"], ["y"], name="m", domain="mine"),
            r"operator mine\.Mish \(node 'm'\) is not ONNX's own",
        ),
        (Node("Conv", ["x", "w"], ["y"], name="c"), r"operator Conv \(node 'c'\).*not supported"),
    ],
)
def test_operators_are_named(node: Any, message: str) -> None:
    model = network([node], {"w": floats(*[1] * 6)}, (1,) * 6)
    with pytest.raises(UnsupportedError, match=message):
        import_model(model)


def test_a_shape_that_depends_on_values() -> None:
    with pytest.raises(UnsupportedError, match=r"NonZero \(the node that makes 'y'\) is not supp"):
        import_model(network([Node("NonZero", ["x"], ["y"])], {}, (2, 3)))


def branches(condition: str) -> list[Any]:
    out = [helper.make_tensor_value_info("y", FLOAT, (2, 3))]
    then = helper.make_graph([Node("Neg", ["x"], ["y"])], "then", [], out)
    other = helper.make_graph([Node("Exp", ["x"], ["y"])], "else", [], out)
    compare = Node("Greater", ["total", "zero"], ["p"])
    total = Node("ReduceSum", ["x"], ["total"], keepdims=0)
    branch = Node("If", [condition], ["y"], then_branch=then, else_branch=other)
    return [total, compare, branch]


@pytest.mark.parametrize("chosen", [True, False])
def test_a_branch_that_is_known(chosen: bool, target: Target) -> None:
    nodes = branches("known")[2:]
    check(network(nodes, {"known": chosen}, (2, 3)), target)


def test_control_flow() -> None:
    model = network(branches("p"), {"zero": np.float32(0)}, (2, 3))
    with pytest.raises(UnsupportedError, match=r"operator If \(.*'y'\) is control flow"):
        import_model(model)


def test_training_mode() -> None:
    node = Node("BatchNormalization", ["x", "s", "t", "m", "v"], ["y", "a", "b"], training_mode=1)
    with pytest.raises(UnsupportedError, match="is in training mode; export the model in eval"):
        import_model(network([node], NORM))


def test_dtypes() -> None:
    with pytest.raises(UnsupportedError, match="input 'x' has dtype complex64; use one of"):
        import_model(relu(dtype=TensorProto.COMPLEX64))
    node = Node("Gather", ["w", "x"], ["y"])
    model = network([node], {"w": np.ones(4, np.complex64)}, (2,), dtype=TensorProto.INT64)
    with pytest.raises(UnsupportedError, match="weight 'w' has dtype complex64"):
        import_model(model)


def test_inputs_that_are_no_tensors() -> None:
    model = relu()
    value = helper.make_tensor_sequence_value_info("x", FLOAT, (2, 3))
    model.graph.input[0].CopyFrom(value)
    with pytest.raises(UnsupportedError, match="input 'x' is not a tensor but sequence_type"):
        import_model(model)


# --- exported from PyTorch ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # PyTorch's exporters warn of their own code
class TestExported:
    """Networks that PyTorch wrote, with its older exporter or its newer one (`dynamo`)."""

    @pytest.fixture
    def torch(self) -> Any:
        pytest.importorskip("onnxscript")
        return pytest.importorskip("torch")

    @pytest.mark.parametrize(("dynamo", "dynamic"), [(False, True), (True, False)])
    def test_convolutions(
        self, torch: Any, dynamo: bool, dynamic: bool, tmp_path: Path, target: Target
    ) -> None:
        x = torch.randn(2, 3, 16, 16)
        model = exported(torch, convolutions(torch), x, tmp_path, dynamo, dynamic)
        assert names(check(model, target, x)) == [
            "transpose",
            "fused_conv2d_add_maximum_minimum",
            "fused_conv2d1_add_add1_maximum_minimum_divide_multiply",
            "fused_conv2d2_add2_relu",
            "mean",
            "fused_matmul_add3",
        ]

    def test_transformer_layer(self, torch: Any, tmp_path: Path, target: Target) -> None:
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        x = torch.randn(2, 6, 16)
        check(exported(torch, layer, x, tmp_path, dynamo=True, dynamic=True), target, x)

    def test_attention(self, torch: Any, tmp_path: Path, target: Target) -> None:
        x = torch.randn(2, 6, 16)
        model = exported(torch, attention(torch), x, tmp_path, dynamo=False, dynamic=True)
        assert {"Shape", "Gather", "Slice"} <= {node.op_type for node in model.graph.node}
        check(model, target, x)


def exported(torch: Any, module: Any, x: Any, folder: Path, dynamo: bool, dynamic: bool) -> Any:
    """The module as PyTorch exports it; the first dimension of its input may be `dynamic`."""
    options: dict[str, Any] = {}
    if dynamic and dynamo:
        options = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    elif dynamic:
        options = {"dynamic_axes": {"x": {0: "batch"}}}
    path = folder / "exported.onnx"
    torch.onnx.export(module.eval(), (x,), path, dynamo=dynamo, input_names=["x"], **options)
    return onnx.load(path)


def convolutions(torch: Any) -> Any:
    nn = torch.nn
    norm = nn.BatchNorm2d(8)
    nn.init.normal_(norm.running_mean)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        norm,
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.Hardswish(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


def attention(torch: Any) -> Any:
    """A layer whose shapes and slices are computed from its input's shape."""

    class Attention(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(16)
            self.project = torch.nn.Linear(16, 48)
            self.out = torch.nn.Linear(16, 16)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.project(self.norm(x)).chunk(3, -1)
            q, k, v = (part.view(batch, length, 2, 8).transpose(1, 2) for part in parts)
            weights = (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1)
            mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
            return x + torch.nn.functional.gelu(self.out(mixed))

    return Attention()
