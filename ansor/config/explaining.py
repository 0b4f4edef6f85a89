"""Explanations of winners."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExplainConfig:
    """Contents of an explanation (`ansor.explain`)."""

    last_trials: int = 64  # last trials whose gain is shown; at most half of all
    fastest: int = 64  # fastest distinct programs; winner and runner-up are among them
    near_names: int = 3  # names of tasks that an error lists for an unknown one


EXPLAIN = ExplainConfig()
