"""Built-in networks in 8 bits: every layer alone is compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

import ansor
from ansor.errors import AnsorError
from ansor.models import build_from_config
from ansor.models.bert import BertConfig
from ansor.models.registry import ModelConfig, model_config
from ansor.models.torch_twin import twin_of
from tests.frontend.quantized_layers import differing, layers
from tests.suites.outcome import Outcome

NETWORKS = {
    "resnet50": model_config("resnet50"),
    "mobilenet_v2": model_config("mobilenet_v2"),
    "bert of two layers": BertConfig(layers=2),  # the others are equal to these
}
SAMPLES = 2  # for calibration


def cases() -> list[str]:
    """Names of the networks."""
    return list(NETWORKS)


def run_case(name: str) -> Outcome:
    """The verdict on all layers of a network."""
    config = NETWORKS[name]
    built = build_from_config(config, name)
    samples = [_sample(config, seed) for seed in range(SAMPLES + 1)]
    try:
        model = ansor.quantize(twin_of(config, built.params), samples[:-1], method="minmax")
        wrong = [text for layer in layers(model, samples[-1]) if (text := differing(layer))]
    except AnsorError as error:
        return Outcome(name, "refused", str(error))
    except Exception as error:  # the verdict on it is the purpose of the suite
        line = (str(error).strip().splitlines() or [""])[-1]
        return Outcome(name, "crashed", f"{type(error).__name__}: {line[:200]}")
    return Outcome(name, "wrong" if wrong else "passed", "; ".join(wrong))


def _sample(config: ModelConfig, seed: int) -> tuple[Any, ...]:
    _, shape = config.input_of(1)
    return (np.random.default_rng(seed).standard_normal(shape).astype(np.float32),)
