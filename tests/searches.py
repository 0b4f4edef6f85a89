"""Searches of one task, and their latencies, without a tuner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from definitions import HARDWARE, dag, sketches

from ansor.config import CostModelConfig, EvolutionConfig, SketchConfig
from ansor.cost_model.model import CostModel
from ansor.executor import in_turns
from ansor.policy.base import Policy
from ansor.policy.candidate import Candidate
from ansor.program.sketch import Sketch
from ansor.targets.cpu.search import CPU_SEARCH

SMALL = EvolutionConfig(initial=128, population=32, promise=64, generations=1, batch=8)


def search_of(
    factory: Callable[..., Any],
    name: str = "matmul_relu",
    seed: int = 0,
    chosen: Sequence[Sketch] | None = None,
    **sizes: Any,
) -> Any:
    """A search of a definition, or of chosen sketches of it."""
    model = CostModel(HARDWARE, CPU_SEARCH, CostModelConfig(), SketchConfig())
    rng = np.random.default_rng(seed)
    spaces = sketches(name) if chosen is None else chosen
    return factory(dag(name).key, spaces, model, SMALL, rng, in_turns, **sizes)


def with_categories(name: str = "matmul_relu", number: int = 0) -> Sketch:
    """A sketch of a definition whose categories have no order."""
    sketch = sketches(name)[number]
    decisions = [replace(d, ordered=d.table.shape[1] > 1) for d in sketch.decisions]
    return replace(sketch, decisions=tuple(decisions))


def drafted_s(batch: Sequence[Candidate]) -> list[float | None]:
    """Latencies as the draft predicts them."""
    return [float(np.exp(-candidate.score)) for candidate in batch]


def run(search: Policy, trials: int, count: int = 8) -> list[Candidate]:
    """Searches for some trials, or until nothing is left; returns the programs in order."""
    done: list[Candidate] = []
    while len(done) < trials:
        batch = search.propose(min(count, trials - len(done)))
        if not batch:
            break
        search.learn(batch, drafted_s(batch))
        done += batch
    return done
