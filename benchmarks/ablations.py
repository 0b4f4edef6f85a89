"""Ablations: the search with one part taken out at a time, by other settings alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ansor.config import TuneConfig
from ansor.errors import ArgumentError

Change = Callable[[TuneConfig], TuneConfig]


def _model(**fields: Any) -> Change:
    """A change of the cost model's settings."""
    return lambda config: replace(config, cost_model=replace(config.cost_model, **fields))


def _evolution(**fields: Any) -> Change:
    """A change of the search's settings."""
    return lambda config: replace(config, evolution=replace(config.evolution, **fields))


_NEVER = 1 << 30  # rounds of patience that no search lives to see

POLICIES: Mapping[str, Change] = MappingProxyType(
    {
        "full": lambda config: config,
        "no-draft": _model(use_draft=False),
        "no-gbdt": _model(use_gbdt=False),
        "no-crossover": _evolution(crossover_rate=0.0),
        "no-mutation": _evolution(crossover_rate=1.0),
        "no-neighbours": _evolution(neighbour_rate=0.0),
        "no-evolution": _evolution(generations=0),
        "no-elite": _evolution(elite=0, measured_ratio=0.0),
        "no-siblings": _evolution(siblings=0),
        "no-descent": _evolution(patience=_NEVER),
        "no-greedy": _evolution(eps_greedy=0.0),
        "random": _model(use_draft=False, use_gbdt=False),
    }
)


def chosen(policies: str) -> list[str]:
    """The names in a list separated by commas.

    Raises:
        ArgumentError: a name is not known.
    """
    found = list(dict.fromkeys(policies.split(",")))
    for name in found:
        if name not in POLICIES:
            raise ArgumentError("policies", name, f"give some of {', '.join(POLICIES)}")
    return found
