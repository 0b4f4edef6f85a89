"""Built-in models against PyTorch twins and against NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.target import Target

from ansor.errors import ArgumentError
from ansor.frontend import compile_model, import_model, optimize
from ansor.frontend.importers.from_relax import from_relax
from ansor.models import (
    BuiltInModel,
    ResNetConfig,
    build_from_config,
    build_model,
    model_config,
    model_names,
)
from ansor.models.bert import BertConfig
from ansor.models.dcgan import DcganConfig
from ansor.models.inception import InceptionConfig
from ansor.models.mobilenet import MobileNetConfig
from ansor.models.parameters import Array
from ansor.models.resnet import BlockShape, block_shapes
from ansor.models.resnet3d import ResNet3dConfig
from ansor.models.squeezenet import SqueezeNetConfig
from ansor.models.vgg import VggConfig
from ansor.models.vit import VitConfig

BASIC = ResNetConfig(blocks=(1, 2), width=8, classes=5, image=32)
BOTTLENECK = ResNetConfig(blocks=(2, 1), expansion=4, width=4, classes=5, image=32)
MOBILE = MobileNetConfig(
    stages=((1, 8, 1, 1), (6, 12, 2, 2)), stem=8, features=32, classes=5, image=32
)
BERT = BertConfig(layers=2, hidden=32, heads=4, intermediate=64, tokens=8)
SQUEEZE = SqueezeNetConfig(stages=(((4, 8),), ((4, 12), (8, 8))), stem=8, classes=5, image=36)
VGG = VggConfig(stages=((8, 1), (12, 2)), hidden=16, classes=5, image=16)
VIT = VitConfig(layers=2, hidden=32, heads=4, intermediate=64, patch=8, classes=5, image=24)
INCEPTION = InceptionConfig(divisor=16, classes=5, image=75)
VIDEO = ResNet3dConfig(blocks=(1, 1), width=4, classes=5, frames=4, image=16)
GENERATOR = DcganConfig(latent=10, width=4, doublings=2)
FAMILIES = {
    "mobilenet": MOBILE,
    "bert": BERT,
    "squeezenet": SQUEEZE,
    "vgg": VGG,
    "inception": INCEPTION,
    "vit": VIT,
    "resnet3d": VIDEO,
    "dcgan": GENERATOR,
}

LARGE = {"inception", "inception_v3", "vgg16", "vit_b_16", "bert_base"}  # seconds each


def large_ones_are_slow(names: Iterable[str]) -> list[Any]:
    """Parameters of a test of each model."""
    return [pytest.param(n, marks=[pytest.mark.slow] if n in LARGE else []) for n in names]


def native_target() -> Target:
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    return Target({"kind": "llvm", "mcpu": str(cpu)})


def image(batch: int, size: int) -> Array:
    shape = (batch, 3, size, size)
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


class NumpyResNet:
    """The architecture once more, in float64 and without any library but NumPy."""

    def __init__(self, config: ResNetConfig, params: Mapping[str, Array]) -> None:
        self.config = config
        self.params = {name: value.astype(np.float64) for name, value in params.items()}

    def windows(self, x: Any, size: int, stride: int, fill: float) -> Any:
        pad = size // 2
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
        views = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
        return views[:, :, ::stride, ::stride]

    def conv(self, x: Any, name: str, stride: int = 1) -> Any:
        weight = self.params[f"{name}.weight"]
        views = self.windows(x, weight.shape[-1], stride, 0.0)
        return np.einsum("nchwij,ocij->nohw", views, weight, optimize=True)

    def norm(self, x: Any, name: str) -> Any:
        vector = {
            key: self.params[f"{name}.{key}"][:, None, None]
            for key in ("weight", "bias", "running_mean", "running_var")
        }
        centred = (x - vector["running_mean"]) / np.sqrt(vector["running_var"] + 1e-5)
        return centred * vector["weight"] + vector["bias"]

    def branch(self, x: Any, name: str, shape: BlockShape) -> Any:
        if not self.config.bottleneck:
            x = np.maximum(self.norm(self.conv(x, f"{name}.conv1", shape.stride), f"{name}.bn1"), 0)
            return self.norm(self.conv(x, f"{name}.conv2"), f"{name}.bn2")
        x = np.maximum(self.norm(self.conv(x, f"{name}.conv1"), f"{name}.bn1"), 0)
        x = np.maximum(self.norm(self.conv(x, f"{name}.conv2", shape.stride), f"{name}.bn2"), 0)
        return self.norm(self.conv(x, f"{name}.conv3"), f"{name}.bn3")

    def shortcut(self, x: Any, name: str, shape: BlockShape) -> Any:
        if not shape.projects:
            return x
        x = self.conv(x, f"{name}.downsample.0", shape.stride)
        return self.norm(x, f"{name}.downsample.1")

    def __call__(self, x: Any) -> Any:
        x = np.maximum(self.norm(self.conv(x, "conv1", 2), "bn1"), 0)
        x = self.windows(x, 3, 2, -np.inf).max((-2, -1))
        for stage, shapes in enumerate(block_shapes(self.config), start=1):
            for index, shape in enumerate(shapes):
                name = f"layer{stage}.{index}"
                x = np.maximum(self.branch(x, name, shape) + self.shortcut(x, name, shape), 0)
        return x.mean((2, 3)) @ self.params["fc.weight"].T + self.params["fc.bias"]


def run(built: BuiltInModel, *arrays: Any) -> Any:
    target = native_target()
    bound = tvm.relax.transform.BindParams("forward", dict(built.params))(built.mod)
    return compile_model(optimize(from_relax(bound).mod, target), target)(*arrays)


@pytest.mark.parametrize("config", [BASIC, BOTTLENECK], ids=["basic", "bottleneck"])
def test_small_networks_agree_with_numpy(config: ResNetConfig) -> None:
    built = build_from_config(config, "small", batch=2, seed=3)
    x = image(2, config.image)
    expected = NumpyResNet(config, built.params)(x)
    np.testing.assert_allclose(run(built, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_resnet18_agrees_with_its_torch_twin() -> None:
    torch = pytest.importorskip("torch")
    from ansor.models.torch_twin import torch_twin

    target, x = native_target(), image(1, 224)
    with torch.no_grad():
        twin = torch_twin("resnet18", build_model("resnet18").params)
        expected = twin(torch.from_numpy(x)).numpy()
    result = compile_model(optimize(import_model("resnet18").mod, target), target)(x)
    assert np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("config", [BASIC, BOTTLENECK], ids=["basic", "bottleneck"])
def test_torch_twin_agrees_with_numpy(config: ResNetConfig) -> None:
    torch = pytest.importorskip("torch")
    from ansor.models.torch_twin import TorchResNet, load_parameters

    built = build_from_config(config, "small")
    x = image(1, config.image)
    with torch.no_grad():
        result = load_parameters(TorchResNet(config), built.params)(torch.from_numpy(x)).numpy()
    expected = NumpyResNet(config, built.params)(x)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", large_ones_are_slow(FAMILIES))
def test_other_families_agree_with_their_torch_twins(family: str) -> None:
    config: Any = FAMILIES[family]
    torch = pytest.importorskip("torch")
    from ansor.models.torch_twin import twin_of

    built = build_from_config(config, "small", batch=2, seed=3)
    ((_, shape),) = built.inputs
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    with torch.no_grad():
        expected = twin_of(config, built.params)(torch.from_numpy(x)).numpy()
    assert np.abs(run(built, x) - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet18", 11_689_512),
        ("resnet34", 21_797_672),
        ("resnet50", 25_557_032),
        ("mobilenet_v2", 3_504_872),
        ("squeezenet1_1", 1_235_496),
        ("vgg16", 138_357_544),
        ("inception_v3", 23_834_568),
        ("resnet3d_18", 33_371_472),
        ("dcgan", 3_576_704),
        ("bert_base", 85_054_464),
        ("vit_b_16", 86_567_656),
    ],
)
def test_parameter_counts_are_those_of_the_literature(name: str, count: int) -> None:
    parameters = model_config(name).network().named_parameters()
    learned = [math.prod(map(int, p.shape)) for key, p in parameters if "running" not in key]
    assert sum(learned) == count


@pytest.mark.parametrize("name", large_ones_are_slow(model_names()))
def test_outputs_are_of_order_one(name: str) -> None:
    torch = pytest.importorskip("torch")
    from ansor.models.torch_twin import torch_twin

    with torch.no_grad():
        built = build_model(name)
        ((_, shape),) = built.inputs
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        result = torch_twin(name, built.params)(torch.from_numpy(x))
    assert 0.1 < float(result.std()) < 10


def test_seed_decides_the_parameters() -> None:
    first, again, other = (build_from_config(BASIC, "small", seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(first.params[key], again.params[key]) for key in first.params)
    assert not np.array_equal(first.params["conv1.weight"], other.params["conv1.weight"])


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"model='vgg'.*resnet18, .*vit_b_16"):
        build_model("vgg")


def test_a_name_may_carry_a_batch() -> None:
    one, many = build_model("squeezenet1_1"), build_model("squeezenet1_1:batch=3")
    assert (one.name, many.name) == ("squeezenet1_1", "squeezenet1_1")
    assert [shape[0] for _, shape in (*one.inputs, *many.inputs)] == [1, 3]
    assert all(np.array_equal(one.params[key], many.params[key]) for key in one.params)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("resnet18:batch=0", "batch=0"),
        ("resnet18:batch=many", "model='resnet18:batch=many'.*resnet18:batch=16"),
        ("resnet18:batch=", "model='resnet18:batch='"),
        ("resnet17:batch=2", "model='resnet17:batch=2'"),
        ("resnet18:size=2", "model='resnet18:size=2'"),
    ],
)
def test_a_batch_is_a_positive_number(text: str, named: str) -> None:
    with pytest.raises(ArgumentError, match=named):
        build_model(text)
