"""State that a model keeps between calls, and models whose calls differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ansor

torch = pytest.importorskip("torch")


class Cache(torch.nn.Module):
    """Attention's cache in small: the newest row replaces the oldest, and a counter counts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 2))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.rows.copy_(torch.cat([self.rows[1:], x]))
        self.count.add_(1)
        return {"mean": self.rows.sum(0) * 0.5, "count": self.count + 0}


def tuned_cache() -> ansor.TunedModel:
    return ansor.auto_schedule(Cache(), example_inputs=(torch.ones(1, 2),), trials=0)


def run_both(tuned: ansor.TunedModel, model: Any, calls: int) -> None:
    for number in range(calls):
        x = torch.full((1, 2), float(number + 1))
        expected, found = model(x), tuned(x)
        torch.testing.assert_close(found["mean"], expected["mean"])
        assert found.count == expected["count"]


class TestState:
    def test_it_is_kept_between_calls(self) -> None:
        run_both(tuned_cache(), Cache(), calls=5)

    def test_it_begins_anew_after_a_reset(self) -> None:
        tuned = tuned_cache()
        run_both(tuned, Cache(), calls=2)
        tuned.reset()
        run_both(tuned, Cache(), calls=2)

    def test_a_saved_model_begins_with_its_first_value(self, tmp_path: Path) -> None:
        tuned = tuned_cache()
        run_both(tuned, Cache(), calls=2)
        tuned.save(tmp_path / "cache.ansor")
        run_both(ansor.load(tmp_path / "cache.ansor"), Cache(), calls=3)

    def test_numpy_and_torch_may_take_turns(self) -> None:
        tuned, model = tuned_cache(), Cache()
        for number in range(4):
            x = torch.full((1, 2), float(number + 1))
            found = tuned(x.numpy() if number % 2 else x)
            np.testing.assert_allclose(np.asarray(found.mean), model(x)["mean"])

    def test_importing_leaves_the_module_alone(self) -> None:
        model = Cache()
        ansor.auto_schedule(model, example_inputs=(torch.ones(1, 2),), trials=0)
        assert model.count == 0
        assert not model.rows.any()

    def test_running_statistics_of_a_batch_norm_in_use(self) -> None:
        class Running(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("mean", torch.zeros(2))

            def forward(self, x: Any) -> Any:
                self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
                return x - self.mean

        model, x = Running(), torch.randn(8, 2)
        tuned = ansor.auto_schedule(Running(), example_inputs=(x,), trials=0)
        for _ in range(3):
            torch.testing.assert_close(tuned(x), model(x))


class Applied(torch.nn.Module):
    """A module that applies a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: x + torch.randn(3, 2), "randn"),
        (lambda x: x * torch.rand_like(x), "rand_like"),
        (lambda x: x + torch.randint(0, 9, (3, 2)), "randint"),
        (lambda x: torch.nn.functional.dropout(x, 0.5, True), "dropout"),
        (lambda x: torch.normal(x, 1.0), "normal"),
    ],
)
def test_randomness_is_refused_by_name(function: Any, operator: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), Applied(function))
    with pytest.raises(ansor.UnsupportedError, match=rf"{operator}.* layer 1 draws random"):
        ansor.auto_schedule(model, example_inputs=(torch.ones(3, 2),), trials=0)


def test_dropout_is_nothing_in_eval_mode() -> None:
    model, x = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.ReLU()), torch.randn(3, 2)
    tuned = ansor.auto_schedule(model, example_inputs=(x,), trials=0)
    torch.testing.assert_close(tuned(x), x.relu())


def test_a_write_to_an_input_is_refused_by_name() -> None:
    with pytest.raises(ansor.UnsupportedError, match="the model writes to its input 'x'"):
        ansor.auto_schedule(Applied(lambda x: x.add_(1)), example_inputs=(torch.ones(3),), trials=0)
