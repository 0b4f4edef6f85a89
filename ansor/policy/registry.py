"""The search policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ansor.errors import ArgumentError
from ansor.policy.base import PolicyFactory
from ansor.policy.policy import SearchPolicy
from ansor.policy.published.actor_critic import ActorCriticPolicy
from ansor.policy.published.best_first import BestFirstPolicy
from ansor.policy.published.genetic import GeneticPolicy
from ansor.policy.published.opevo import OpEvoPolicy
from ansor.policy.published.ranked import RankedPolicy
from ansor.policy.published.row_policy import RowPolicy
from ansor.policy.published.uniform import GridPolicy, UniformPolicy

DEFAULT, FILTER = "evolutionary", "+draft"
PUBLISHED: Mapping[str, type[RowPolicy]] = {
    "opevo": OpEvoPolicy,
    "gbfs": BestFirstPolicy,
    "na2c": ActorCriticPolicy,
    "ga": GeneticPolicy,
    "xgb-sa": RankedPolicy,
    "random": UniformPolicy,
    "grid": GridPolicy,
}
POLICIES: Mapping[str, PolicyFactory] = {
    DEFAULT: SearchPolicy,
    **PUBLISHED,
    **{name + FILTER: partial(policy, use_filter=True) for name, policy in PUBLISHED.items()},
}


def policy_named(policy: str | PolicyFactory) -> PolicyFactory:
    """The factory that a name stands for; a factory stands for itself.

    Raises:
        ArgumentError: no policy has that name, or it is neither a name nor a factory.
    """
    if isinstance(policy, str) and policy in POLICIES:
        return POLICIES[policy]
    if isinstance(policy, str) or not callable(policy):
        remedy = f"must be one of {', '.join(POLICIES)}, or a function that makes a Policy"
        raise ArgumentError("policy", policy, remedy)
    return policy
