"""Supported and refused models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te
from tvm.target import Target

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend import (
    InputSpec,
    compile_model,
    extract_functions,
    from_te,
    import_model,
    optimize,
)
from ansor.models import BuiltInModel, ResNetConfig


def identity(parameters: list[relax.Var], names: tuple[str, ...] = ("main",)) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    for name in names:
        with builder.function(name, parameters):
            builder.emit_func_output(parameters[0])
    return builder.get()


def tensor(name: str, shape: tuple[Any, ...], dtype: str = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def test_relax_module_states_its_inputs() -> None:
    model = import_model(identity([tensor("a", (2, 3)), tensor("b", (4,), "int64")]))
    assert model.entry == "main"
    assert model.inputs == (InputSpec("a", (2, 3), "float32"), InputSpec("b", (4,), "int64"))


def test_built_in_model_has_no_parameters_left() -> None:
    model = import_model("resnet18")
    assert model.inputs == (InputSpec("x", (1, 3, 224, 224), "float32"),)


def test_unknown_name() -> None:
    with pytest.raises(ArgumentError, match="give one of the built-in models: resnet18"):
        import_model("resnet1")


def test_unknown_kind_of_model() -> None:
    with pytest.raises(ArgumentError, match=r"model='int': give a torch\.nn\.Module"):
        import_model(3)


def test_unbound_weights(built: BuiltInModel) -> None:
    with pytest.raises(ArgumentError, match=r"conv1\.weight.*BindParams"):
        import_model(built.mod)


def test_dynamic_shape_in_relax() -> None:
    batch = tvm.tirx.Var("batch", "int64")
    with pytest.raises(UnsupportedError, match="input 'x': dimension 0 is dynamic"):
        import_model(identity([tensor("x", (batch, 3))]))


def test_unknown_dtype_in_relax() -> None:
    with pytest.raises(UnsupportedError, match="input 'x' has dtype float8_e4m3fn"):
        import_model(identity([tensor("x", (2,), "float8_e4m3fn")]))


def test_input_that_is_no_tensor() -> None:
    pair = relax.TupleType([relax.TensorType((1,), "float32")] * 2)
    with pytest.raises(UnsupportedError, match="input 'x' is not a tensor"):
        import_model(identity([relax.Var("x", pair)]))


def test_several_functions() -> None:
    with pytest.raises(UnsupportedError, match="exactly one Relax function"):
        import_model(identity([tensor("x", (2,))], names=("first", "second")))


def test_te_tensors_become_a_function() -> None:
    a = te.placeholder((4, 4), name="a")
    func = from_te([a, te.compute((4, 4), lambda i, j: a[j, i], name="b")])
    assert isinstance(func, tvm.tirx.PrimFunc)


@pytest.mark.parametrize("tensors", [[], [1, 2]])
def test_te_needs_tensors(tensors: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="inputs first, then outputs"):
        from_te(tensors)


class TestTorch:
    """Everything that needs PyTorch."""

    @pytest.fixture
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    def test_twin_becomes_the_same_functions(
        self, torch: Any, built: BuiltInModel, optimized: tvm.IRModule, target: Target
    ) -> None:
        from ansor.models.torch_twin import TorchResNet, load_parameters

        config = ResNetConfig(blocks=(1, 2), width=8, classes=10, image=32)
        twin = load_parameters(TorchResNet(config), built.params)
        ours = optimize(import_model(twin, torch.zeros(1, 3, 32, 32)).mod, target)
        assert calls(ours) == calls(optimized)

    def test_module_becomes_functions(self, torch: Any, target: Target) -> None:
        model, x = small_convnet(torch), torch.randn(1, 3, 16, 16)
        imported = import_model(model, x)
        assert imported.inputs == (InputSpec("input", (1, 3, 16, 16), "float32"),)
        optimised = optimize(imported.mod, target)
        names = [function.name for function in extract_functions(optimised)]
        assert names == ["transpose", "fused_conv2d_add_relu", "max_pool2d", "mean",
                         "fused_matmul_add1"]  # fmt: skip
        check_against_torch(torch, model, optimised, x, target)

    def test_exported_program_needs_no_inputs(self, torch: Any, target: Target) -> None:
        model, x = small_convnet(torch).eval(), torch.randn(1, 3, 16, 16)
        imported = import_model(torch.export.export(model, (x,)))
        check_against_torch(torch, model, optimize(imported.mod, target), x, target)

    def test_numpy_examples_and_modes(self, torch: Any) -> None:
        model = small_convnet(torch)
        model[1].eval()
        import_model(model, [np.zeros((1, 3, 16, 16), np.float32)])
        assert model.training
        assert not model[1].training

    def test_missing_example_inputs(self, torch: Any) -> None:
        with pytest.raises(ArgumentError, match="example_inputs=None"):
            import_model(torch.nn.Linear(2, 2))

    def test_wrong_example_inputs(self, torch: Any) -> None:
        with pytest.raises(ArgumentError, match=r"example_inputs\[0\]='str'"):
            import_model(torch.nn.Linear(2, 2), ("x",))

    def test_dynamic_shape(self, torch: Any) -> None:
        shapes = ({0: torch.export.Dim("batch")},)
        model, x = torch.nn.Linear(2, 2), torch.zeros(4, 2)
        program = torch.export.export(model, (x,), dynamic_shapes=shapes)
        with pytest.raises(UnsupportedError, match="dimension 0 is dynamic"):
            import_model(program)

    def test_unsupported_dtype(self, torch: Any) -> None:
        x = torch.zeros(2, 2, dtype=torch.complex64)
        with pytest.raises(UnsupportedError, match="complex64"):
            import_model(torch.nn.Identity(), x)

    def test_unsupported_weight_dtype(self, torch: Any) -> None:
        model = torch.nn.Linear(2, 2)
        model.register_buffer("scale", torch.ones(2, dtype=torch.float8_e4m3fn))
        with pytest.raises(UnsupportedError, match="weight 'scale' has dtype float8_e4m3fn"):
            import_model(model, torch.zeros(1, 2))

    def test_unsupported_operator_names_its_layer(self, torch: Any) -> None:
        class Bessel(torch.nn.Module):  # type: ignore[name-defined,misc]
            def forward(self, x: Any) -> Any:
                return torch.special.bessel_j0(x)

        model = torch.nn.Sequential(torch.nn.Linear(2, 2), Bessel())
        with pytest.raises(UnsupportedError, match=r"special_bessel_j0.*layer 1"):
            import_model(model, torch.zeros(1, 2))

    def test_control_flow_on_data(self, torch: Any) -> None:
        class Branch(torch.nn.Module):  # type: ignore[name-defined,misc]
            def forward(self, x: Any) -> Any:
                return x if x.sum() > 0 else -x

        with pytest.raises(UnsupportedError, match=r"torch\.export cannot capture"):
            import_model(Branch(), torch.zeros(2))


def calls(mod: tvm.IRModule) -> list[tuple[str, int]]:
    return [(function.name, function.weight) for function in extract_functions(mod)]


def small_convnet(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(8, 5),
    )


def check_against_torch(torch: Any, model: Any, mod: Any, x: Any, target: Target) -> None:
    with torch.no_grad():
        expected = model.eval()(x)
    torch.testing.assert_close(compile_model(mod, target)(x), expected, rtol=1e-4, atol=1e-5)
