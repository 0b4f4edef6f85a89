"""Operators of PyTorch: imported, compiled and compared with PyTorch, many in one module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from ansor.errors import UnsupportedError  # noqa: E402
from ansor.frontend.deploy.runtime import compile_model  # noqa: E402
from ansor.frontend.importers.from_torch.capture import array_of  # noqa: E402
from ansor.frontend.importers.importer import import_model  # noqa: E402
from ansor.frontend.optimization import optimize  # noqa: E402
from ansor.targets.target import resolve_target  # noqa: E402

Functions = Mapping[str, Callable[..., Any]]


class Together(torch.nn.Module):
    """Several functions of the same inputs."""

    def __init__(self, functions: Functions) -> None:
        super().__init__()
        self.functions = dict(functions)

    def forward(self, *tensors: Any) -> dict[str, Any]:
        """Each function's result, by its name."""
        return {name: function(*tensors) for name, function in self.functions.items()}


def check(functions: Functions, *tensors: Any, tolerance: float = 2e-4) -> None:
    """Compares values, shapes and dtypes of all results with PyTorch's."""
    module = Together(functions)
    target = resolve_target("native")
    compiled = compile_model(optimize(import_model(module, tensors).mod, target), target)
    found = compiled(*map(array_of, tensors))
    results = found if isinstance(found, tuple) else (found,)
    leaves = torch.utils._pytree.tree_flatten_with_path(module(*tensors))[0]
    assert len(results) == len(leaves)
    for result, (path, expected) in zip(results, leaves, strict=True):
        array = array_of(expected)
        assert (result.shape, result.dtype) == (array.shape, array.dtype), path
        wide = np.float64 if array.dtype.kind not in "biu" else array.dtype
        close = tolerance if wide is np.float64 else 0
        np.testing.assert_allclose(
            result.astype(wide), array.astype(wide), rtol=close, atol=close, err_msg=str(path)
        )


def normal(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_arithmetic() -> None:
    functions = {
        "add, alpha": lambda x, y: torch.add(x, y, alpha=3),
        "sub, alpha": lambda x, y: torch.sub(x, y, alpha=3),
        "rsub, alpha": lambda x, y: torch.rsub(x, y, alpha=3),
        "divide, floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
        "divide, trunc": lambda x, y: torch.div(x, 0.3, rounding_mode="trunc"),
        "remainder": lambda x, y: torch.remainder(x, y),
        "fmod": lambda x, y: torch.fmod(x, y),
        "clamp": lambda x, y: torch.clamp(x, y, y + 1),
        "compare": lambda x, y: (x > y) | (x <= 0.1),
        "integers and floats": lambda x, y: (x > 0) * 2 + (y > 0).long() * 0.5,
        "round": lambda x, y: torch.round(x, decimals=1),
        "atan2": lambda x, y: torch.atan2(x, y),
        "power": lambda x, y: (x.abs() ** 0.3, x**3, 2.0**y),
        "lerp": lambda x, y: torch.lerp(x, y, 0.3),
        "where": lambda x, y: torch.where(x > y, x, 1),
        "nan": lambda x, y: torch.isnan(torch.where(x > 0, float("nan"), x)),
        "unequal": lambda x, y: (
            torch.where(x > 0, float("nan"), x) != y,
            torch.where(x > 0, float("nan"), x).bool(),
        ),
        "fmax": lambda x, y: torch.fmax(torch.where(x > 0, float("nan"), x), y),
    }
    check(functions, normal(4, 5), normal(5, seed=1))


def test_functions_near_zero_and_far_away() -> None:
    functions = {
        "log1p": torch.log1p,
        "expm1": torch.expm1,
        "erfinv": lambda x: torch.erfinv(x.clamp(-1, 1)),
        "softplus": F.softplus,
        "gelu": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh")),
        "elu": lambda x: (F.elu(x, 0.5), F.selu(x), F.celu(x, 0.7)),
        "hard": lambda x: (F.hardtanh(x, -0.3, 0.7), F.hardsigmoid(x), F.hardswish(x)),
        "silu": lambda x: (F.silu(x), F.mish(x), F.logsigmoid(x)),
        "leaky_relu": lambda x: F.leaky_relu(x, 1.5),
        "exp2": lambda x: (torch.exp2(x), torch.log2(x.abs()), torch.log10(x.abs())),
    }
    check(functions, torch.tensor([-30.0, -1, -0.4, -1e-4, 0, 1e-7, 0.3, 1, 2.5, 40]))


def test_integers() -> None:
    functions = {
        "matmul": lambda a, b: a @ b,
        "divide": lambda a, b: torch.div(a, 3, rounding_mode="floor"),
        "truncate": lambda a, b: torch.div(a, 3, rounding_mode="trunc"),
        "remainder": lambda a, b: (a % 7, torch.fmod(a, 7)),
        "true division": lambda a, b: a / 4,
        "sum": lambda a, b: (a.sum(), (a > 0).sum(0), a.prod(1)),
        "bits": lambda a, b: (a & 12, a | 3, a ^ 5, ~a, a << 2, a >> 1),
        "power": lambda a, b: a**5,
        "sign": lambda a, b: (a.sign(), a.abs(), -a),
        "cumsum": lambda a, b: (a > 0).cumsum(1),
    }
    generator = torch.Generator().manual_seed(0)
    limit = 40_000
    pair = [torch.randint(-limit, limit, s, generator=generator) for s in ((4, 33), (33, 3))]
    check(functions, *pair)


def test_shapes() -> None:
    functions = {
        "permute": lambda x: (x.permute(2, 0, 1), x.transpose(-1, 0), x.movedim(0, 1)),
        "slice": lambda x: (x[1:, ::2, -3:], x[..., 1], x[:, None]),
        "split": lambda x: (*x.split([1, 3], 1), *x.chunk(3, -1), *x.unbind(0)),
        "cat": lambda x: torch.cat([x, torch.zeros(0), x.long()], 1),
        "roll": lambda x: (x.roll(1), x.roll((1, -2), (0, 2)), x.flip(0, 2)),
        "pad": lambda x: (F.pad(x, (-1, 2, 1, 0), value=1.5), F.pad(x, (1, 2), mode="reflect")),
        "diagonal": lambda x: (x.diagonal(1, 1, 2), torch.diag_embed(x[0])),
        "diagonal_scatter": lambda x: (
            torch.diagonal_scatter(x, x.diagonal(1, 1, 2) * 2, 1, 1, 2),
            torch.diagonal_scatter(x, x.diagonal(-1, 0, 2) * 2, -1, 0, 2),
        ),
        "unfold": lambda x: (x.unfold(2, 3, 2), F.unfold(x[None], 2)),
        "repeat": lambda x: (x.repeat(2, 1, 3), x.repeat_interleave(2, 1), x.expand(2, 2, 4, 5)),
        "triangle": lambda x: (x.tril(-1), x.triu(1)),
        "scatter": lambda x: (
            torch.slice_scatter(x, torch.zeros(2, 4, 2), 2, 1, 5, 2),
            torch.select_scatter(x, torch.ones(2, 5), 1, -1),
        ),
        "squeeze": lambda x: x[:1].squeeze(0).unsqueeze(-1),
        "shuffle": lambda x: (F.channel_shuffle(x[None], 2), F.pixel_shuffle(x[:, :, None], 2)),
        "no dimensions": lambda x: x[0, 0, 0] * 2,
        "no elements": lambda x: (x[:, :0], x[:, :0].sum(1), x[:0].mean()),
    }
    check(functions, normal(2, 4, 5))


def test_places() -> None:
    functions = {
        "one axis": lambda x, i: (x[i], x[:, i], x[:, [0, -1, -3]]),
        "two axes": lambda x, i: (x[i, i], x[:, i, i], x[i, :, i], x[i[:, None], i]),
        "put": lambda x, i: torch.index_put(x, (i,), torch.zeros(3, 5, 5)),
        "put, added": lambda x, i: x.index_put((i, i), torch.tensor(1.0), accumulate=True),
        "mask": lambda x, i: x.masked_fill(x > 0, 1.5),
        "index_add": lambda x, i: x.index_add(0, i.abs(), torch.ones(3, 5, 5)),
        "gather": lambda x, i: x.gather(1, i.abs()[None, :, None].expand(2, 3, 4)),
        "scatter": lambda x, i: x.scatter(1, i.abs()[None, :, None].expand(2, 3, 4), 7.0),
        "scatter_add": lambda x, i: x.scatter_add(1, i.abs()[None, :, None].expand(2, 3, 4), x),
        "amax": lambda x, i: x.scatter_reduce(
            0, i.abs()[:, None, None].expand(3, 5, 5), x[:3] * 2, "amax", include_self=False
        ),
        "mean": lambda x, i: x.scatter_reduce(0, i.abs()[:, None, None], x[:3, :1, :1], "mean"),
        "embedding": lambda x, i: F.embedding(i.abs(), x[0]),
        "take": lambda x, i: torch.take_along_dim(x, i.abs()[:, None, None], 0),
    }
    check(functions, normal(5, 5, 5), torch.tensor([0, -1, -3]))


def test_reductions() -> None:
    functions = {
        "sum": lambda x: (x.sum(), x.sum((0, 2)), x.sum(1, keepdim=True)),
        "mean": lambda x: (x.mean(), x.mean(-1)),
        "variance": lambda x: (x.std(), x.var(1, unbiased=False), *torch.var_mean(x, (0, 1))),
        "extremes": lambda x: (x.amax(0), x.amin((1, 2)), x.max(), *x.max(1), *x.min(2, True)),
        "places": lambda x: (x.argmax(), x.argmin(1), x.round().argmax(-1, keepdim=True)),
        "truth": lambda x: ((x > 0).any(1), (x > -1).all(0), (x > 2).any()),
        "product": lambda x: (x.prod(), x.prod(1)),
        "norm": lambda x: (torch.linalg.norm(x[0]), x.norm(1, 2), F.normalize(x)),
        "order": lambda x: (*x.sort(1), *x.topk(2, 0, largest=False), x.argsort(-1)),
        "running": lambda x: (x.cumsum(0), x.cumprod(-1)),
        "distance": lambda x: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=1)),
        "softmax": lambda x: (x.softmax(1), x.log_softmax(-1), x.logsumexp(0)),
        "quantile": lambda x: torch.quantile(x, 0.3, dim=1),
    }
    check(functions, normal(3, 4, 5))


def test_products() -> None:
    functions = {
        "addmm": lambda x: torch.addmm(x, x, x, beta=0.5, alpha=2.0),
        "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None], beta=0, alpha=2.0),
        "tensordot": lambda x: torch.tensordot(x, x, 1),
        "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
        "mv": lambda x: (x @ x[0], torch.dot(x[0], x[1]), torch.outer(x[0], x[1])),
        "attention": lambda x: F.scaled_dot_product_attention(
            x[None, None], x[None, None], x[None, None], is_causal=True
        ),
        "bilinear": lambda x: F.bilinear(x, x, torch.ones(2, 6, 6)),
    }
    check(functions, normal(6, 6))


def test_pooling() -> None:
    functions = {
        "ceil mode": lambda x: (
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.max_pool2d(x, 2, 3, 0, ceil_mode=True),
        ),
        "divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=2),
        "dilation": lambda x: F.max_pool2d(x, 2, 2, 1, dilation=2),
        "indices": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        "one and three dimensions": lambda x: (
            F.avg_pool1d(x[0], 3, 2, 1, ceil_mode=True),
            F.max_pool3d(x, 2, 1),
            F.avg_pool3d(x, 2, divisor_override=3),
        ),
        "adaptive": lambda x: (
            F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_max_pool2d(x, 3),
            F.adaptive_avg_pool1d(x[0], 4),
        ),
        "powers": lambda x: F.lp_pool2d(x.abs(), 2.0, 3),
    }
    check(functions, normal(1, 2, 6, 7))


def test_images() -> None:
    functions = {
        "nearest": lambda x, g: (
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, scale_factor=1.7),
            F.interpolate(x, (11, 5), mode="nearest-exact"),
        ),
        "linear": lambda x, g: (
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.interpolate(x, (11, 5), mode="bilinear", align_corners=True),
        ),
        "cubic": lambda x, g: F.interpolate(x, (11, 5), mode="bicubic"),
        "smoothed": lambda x, g: F.interpolate(x, (3, 4), mode="bicubic", antialias=True),
        "grid": lambda x, g: (
            F.grid_sample(x, g, padding_mode="border", align_corners=True),
            F.grid_sample(x, g, mode="nearest", padding_mode="reflection", align_corners=False),
            F.grid_sample(x, g, mode="bicubic", padding_mode="reflection", align_corners=False),
        ),
    }
    check(functions, normal(1, 2, 6, 8), normal(1, 3, 4, 2, seed=1))


def test_volumes_are_read_at_positions() -> None:
    functions = {
        "linear": lambda x, g: F.grid_sample(x, g, align_corners=False),
        "nearest": lambda x, g: F.grid_sample(
            x, g, mode="nearest", padding_mode="border", align_corners=True
        ),
    }
    check(functions, normal(1, 2, 4, 5, 6), normal(1, 3, 2, 4, 3, seed=1))


def test_the_inverse_error_function_is_exact_near_its_ends() -> None:
    near_one = 1 - 10.0 ** -torch.linspace(1, 15, 30, dtype=torch.float64)
    x = torch.cat([near_one, -near_one, torch.linspace(-0.9, 0.9, 30, dtype=torch.float64)])
    check({"float64": lambda x: torch.erfinv(x)}, x, tolerance=1e-12)


def test_normalisations_and_their_statistics() -> None:
    functions = {
        "batch": lambda x: F.batch_norm(x, None, None, training=True),
        "layer": lambda x: torch.native_layer_norm(x, (5,), None, None, 1e-5),
        "group": lambda x: torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5),
        "instance": F.instance_norm,
        "local response": lambda x: F.local_response_norm(x, 3),
    }
    check(functions, normal(2, 4, 5))


CONVOLUTIONS = {
    "transposed, groups": (torch.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (1, 4, 5, 6)),
    "transposed, dilated": (torch.nn.ConvTranspose1d(3, 2, 3, 2, 1, 2, dilation=3), (2, 3, 7)),
    "volume, transposed": (torch.nn.ConvTranspose3d(2, 3, 3, 2, 1, 1), (1, 2, 3, 4, 4)),
    "even kernel": (torch.nn.Conv2d(3, 5, (4, 2), padding="same"), (1, 3, 6, 7)),
    "circular": (torch.nn.Conv2d(3, 5, 3, padding=1, padding_mode="circular"), (3, 6, 7)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    module, shape = CONVOLUTIONS[name]
    check({name: module.eval().requires_grad_(False)}, normal(*shape))


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-12), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)],
    ids=str,
)
def test_other_dtypes(dtype: Any, tolerance: float) -> None:
    layers = (torch.nn.Conv1d(4, 4, 3), torch.nn.GELU(), torch.nn.Linear(6, 3))
    module = torch.nn.Sequential(*layers, torch.nn.LayerNorm(3), torch.nn.Softmax(-1))
    module = module.to(dtype).eval().requires_grad_(False)
    check({"layers": module}, normal(2, 4, 8).to(dtype), tolerance=tolerance)


class Layered(torch.nn.Module):
    """A function in a layer with a name."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.inner = Together({"only": function})

    def forward(self, x: Any) -> Any:
        """The function's result."""
        return self.inner(x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: torch.linalg.inv(x), "linalg_inv_ex"),
        (lambda x: torch.fft.rfft(x), "complex"),
        (lambda x: F.dropout(x, training=True), "random"),
        (lambda x: torch.view_as_complex(x.reshape(2, 4, 2)), "complex"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_operator_and_layer(
    function: Any, words: str
) -> None:
    with pytest.raises(UnsupportedError, match=words) as refused:
        import_model(Layered(function), normal(4, 4))
    assert "inner" in str(refused.value)
    assert "\n" not in str(refused.value)
