"""`torch.compile` with the backend "ansor": small graphs beside eager PyTorch."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from formula_device import FormulaDevice  # noqa: E402

from ansor.config import QUICK  # noqa: E402
from ansor.errors import GraphWarning  # noqa: E402
from ansor.torch_compile.backend import compile_graph  # noqa: E402

nn = torch.nn
PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(autouse=True)
def _forget_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def compiled(model: Any, dynamic: bool | None = None, **options: Any) -> Any:
    """The model with the backend; nothing is measured by default."""
    given = {"trials": 0, "device": FormulaDevice(), "config": QUICK, "check_import": False}
    return torch.compile(
        model, backend=compile_graph, dynamic=dynamic, options={**given, **options}
    )


def check(fast: Any, model: Any, *inputs: Any) -> Any:
    """Compares results and inputs with eager PyTorch after a call; returns the results."""
    others = copy.deepcopy(inputs)
    found, expected = fast(*inputs), model(*others)
    torch.testing.assert_close((found, inputs), (expected, others), rtol=1e-4, atol=1e-5)
    return found


def texts(calls: Callable[[], object]) -> list[str]:
    """The warnings of the backend in some calls; others are errors."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", GraphWarning)
        calls()
    return [str(one.message) for one in found if one.category is GraphWarning]


class Shared(nn.Module):
    """Writes to an input, reads buffers, returns views of an input and of each other."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.factor = nn.Linear(4, 4), torch.full((4,), 2.0)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Any, y: Any) -> Any:
        y.add_(1)
        z = self.linear(x) * self.factor + self.offset
        return z, z.view(-1), x[1:], y


def test_writes_and_views_are_those_of_pytorch() -> None:
    model = Shared()
    fast = compiled(model)
    x, y = torch.randn(2, 4), torch.randn(4, 4)
    whole, flat, part, written = check(fast, model, x, y)
    whole.add_(1)
    assert torch.equal(flat, whole.view(-1))
    part.zero_()
    assert not x[1:].any()
    assert written.data_ptr() == y.data_ptr()
    first = whole.clone()
    check(fast, model, torch.randn(2, 4), y)
    assert torch.equal(whole, first), "a later call writes to other memory"


def test_results_have_the_layout_of_pytorch() -> None:
    model = nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(1, 2, 5, 6).to(memory_format=torch.channels_last)
    found = check(compiled(model), model, x)
    assert found.stride() == model(x).stride()


def test_a_graph_of_views_needs_no_network() -> None:
    device, x = FormulaDevice(), torch.randn(2, 3)
    found = check(compiled(lambda x: (x.t(), x[0]), device=device), lambda x: (x.t(), x[0]), x)
    assert found[0].data_ptr() == x.data_ptr()
    assert not device.is_closed, "nothing was tuned"


def test_each_size_has_its_network() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    fast = compiled(model, dynamic=True)
    found = texts(lambda: [check(fast, model, torch.randn(rows, 3)) for rows in (2, 5, 2, 5)])
    assert found == [
        "ansor compiles a graph with symbolic sizes for each size that it is called with"
    ]


def test_changed_parameters_are_used() -> None:
    model = nn.Linear(3, 3)
    fast, x = compiled(model), torch.randn(2, 3)
    check(fast, model, x)
    changes: list[Callable[[], object]] = [
        lambda: model.weight.mul_(2),
        lambda: setattr(model.bias, "data", torch.randn(3)),
        lambda: model.load_state_dict(nn.Linear(3, 3).state_dict()),
    ]
    for change in changes:
        change()
        (text,) = texts(lambda: check(fast, model, x))
        assert "parameters or buffers have changed" in text
    assert texts(lambda: check(fast, model, x)) == []


def test_frozen_parameters_may_be_replaced_and_not_changed_in_place() -> None:
    model = nn.Linear(3, 3)
    fast, x = compiled(model, freezing=True), torch.randn(2, 3)
    before = check(fast, model, x).clone()
    model.weight.mul_(2)
    assert texts(lambda: torch.testing.assert_close(fast(x), before)) == []
    model.weight = nn.Parameter(torch.randn(3, 3))
    assert len(texts(lambda: check(fast, model, x))) == 1


class Counting(nn.Module):
    """Reads a buffer that the caller changes, and writes one itself."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x: Any) -> Any:
        self.seen.add_(x)
        return x * self.scale + self.seen


def test_buffers_that_change_become_inputs() -> None:
    model = Counting()
    fast, other = compiled(copy.deepcopy(model)), model
    for change in range(3):
        fast.scale.add_(1)
        other.scale.add_(1)
        found = texts(lambda: check(fast, other, torch.randn(3)))
        assert len(found) == (change == 1), "the graph is compiled again once"
    torch.testing.assert_close(fast.seen, other.seen)


def test_an_unsupported_operator_runs_in_pytorch_with_one_warning() -> None:
    def model(x: Any) -> Any:
        return torch.linalg.eigvalsh(x + 1)

    fast, x = compiled(model), torch.randn(3, 3)
    (text,) = texts(lambda: [check(fast, model, x) for _ in range(2)])
    assert "runs a graph in PyTorch" in text
    assert "eigh" in text


def test_random_numbers_are_left_to_pytorch() -> None:
    model = nn.Dropout(0.5)
    fast, x = compiled(model), torch.ones(100)

    def seeded(call: Any) -> Any:
        torch.manual_seed(1)
        return call(x)

    (text,) = texts(lambda: seeded(fast))
    assert "random numbers" in text
    assert torch.equal(seeded(fast), seeded(model))


def test_training_runs_in_pytorch() -> None:
    model = nn.Linear(3, 3)
    fast, x = compiled(model), torch.randn(2, 3)
    with torch.enable_grad():
        (text,) = texts(lambda: fast(x).sum().backward())
        assert "gradients" in text
        found = model.weight.grad.clone()
        model.zero_grad()
        model(x).sum().backward()
    torch.testing.assert_close(found, model.weight.grad)
    check(fast, model, x)


def test_inputs_that_share_memory_may_be_written() -> None:
    def model(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    fast, base = compiled(model), torch.arange(6.0)
    other = base.clone()
    (text,) = texts(lambda: fast(base[:4], base[2:]))
    assert "share memory" in text
    expected = model(other[:4], other[2:])
    again = torch.arange(6.0)
    assert torch.equal(fast(again[:4], again[2:]), expected)
    assert torch.equal(base, other)
    assert torch.equal(again, other)


def test_threads_may_call_a_graph_at_the_same_time() -> None:
    model = nn.Linear(4, 4)
    fast, inputs = compiled(model), [torch.randn(3, 4) for _ in range(16)]
    check(fast, model, inputs[0])

    def call(x: Any) -> Any:
        with torch.no_grad():  # a setting of each thread
            return fast(x)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, inputs))
    torch.testing.assert_close(found, [model(x) for x in inputs], rtol=1e-4, atol=1e-5)


def test_inference_mode_needs_no_other_call() -> None:
    model = nn.Linear(3, 3)
    fast, x = compiled(model), torch.randn(2, 3)
    with torch.inference_mode():
        check(fast, model, x)


def test_a_second_compilation_measures_nothing(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(2, 8)
    counts = []
    for _ in range(2):
        torch._dynamo.reset()
        device = FormulaDevice()
        options = {"trials": 2, "database": tmp_path / "records.sqlite", "device": device}
        check(compiled(model, **options), model, x)
        counts.append(device.count)
    assert counts == [2, 0]


def test_new_weights_need_no_new_search() -> None:
    model, x, device = nn.Linear(8, 8), torch.randn(2, 8), FormulaDevice()
    fast = compiled(model, trials=2, device=device)
    check(fast, model, x)
    model.weight.mul_(3)
    assert len(texts(lambda: check(fast, model, x))) == 1
    assert device.count == 2


def test_options_of_pytorch_itself_are_taken() -> None:
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    guards = torch.compiler.skip_guard_on_all_nn_modules_unsafe
    fast = compiled(model, guard_filter_fn=guards)
    check(fast, model, x)
    model.weight.mul_(2)
    assert len(texts(lambda: check(fast, model, x))) == 1, "weights are still checked"


@pytest.mark.parametrize(
    ("options", "mode", "text"),
    [
        ({"trails": 3}, None, "trails=3"),
        ({"freezing": 1}, None, "freezing=1: give True or False"),
        ({}, "reduce-overhead", "mode='reduce-overhead'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], mode: str | None, text: str) -> None:
    fast = torch.compile(nn.Linear(3, 3), backend=_with(options, mode))
    with pytest.raises(Exception, match=text):
        fast(torch.randn(2, 3))


def _with(options: dict[str, Any], mode: str | None) -> Any:
    """The backend as `torch.compile` calls it; this itself takes a mode or options, not both."""
    return lambda graph, inputs: compile_graph(graph, inputs, options=options, mode=mode)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads TOML")
def test_the_backend_is_registered() -> None:
    import tomllib

    group = "torch_dynamo_backends"
    ((name, value),) = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][group].items()
    assert name == "ansor"
    assert EntryPoint(name, value, group).load() is compile_graph
