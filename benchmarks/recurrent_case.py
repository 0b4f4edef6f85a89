"""What `benchmarks.recurrent` compares, and its end in the process of a system.

``python -m benchmarks.recurrent_case CASE``, a `RecurrentCase` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from ansor.compare.child import timed
from ansor.compare.turns import LATENCY, Answer, answer_turns
from ansor.run.tuned.saved import load

INPUTS, UNITS, LAYERS, STEPS = 64, 128, 2, 20
KINDS: Mapping[str, Any] = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}
OWN = "ansor"
ERROR = "max_rel_err"
_WARM_UP_S = 0.05


@dataclass(frozen=True)
class RecurrentCase:
    """One layer in one system.

    Attributes:
        kind: of `KINDS`.
        file: the tuned network, saved.
        threads: that the system uses.
        system: "ansor" or "torch".
        seconds: of timed runs, each turn.
    """

    kind: str
    file: str
    threads: int
    system: str
    seconds: float

    def arguments(self) -> list[str]:
        """Of the interpreter that runs the system."""
        return ["-m", "benchmarks.recurrent_case", json.dumps(asdict(self))]


def layer(kind: str) -> torch.nn.Module:
    """The layer with the weights that all systems share, in eval mode."""
    torch.manual_seed(0)
    module: torch.nn.Module = KINDS[kind](INPUTS, UNITS, LAYERS, batch_first=True)
    return module.eval()


def example() -> torch.Tensor:
    """`[1, STEPS, INPUTS]`, normal numbers."""
    return torch.from_numpy(np.random.default_rng(0).standard_normal((1, STEPS, INPUTS), "float32"))


def _loaded(case: RecurrentCase) -> tuple[Answer, Callable[[], Answer]]:
    """A system's layer, after a first run that is compared with PyTorch's."""
    torch.set_num_threads(case.threads)
    module, x = layer(case.kind), example()
    network = load(case.file, case.threads) if case.system == OWN else module

    def call() -> Any:
        with torch.inference_mode():
            return network(x)

    with torch.inference_mode():
        expected = module(x)[0]
    difference = (call()[0] - expected).abs().max() / expected.abs().max()

    def turn() -> Answer:
        return {LATENCY: timed(call, _WARM_UP_S, case.seconds)}

    return {ERROR: float(difference)}, turn


if __name__ == "__main__":
    given = RecurrentCase(**json.loads(sys.argv[1]))
    answer_turns(lambda: _loaded(given))
