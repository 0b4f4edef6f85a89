"""The names of the policies."""

from __future__ import annotations

import pytest
from searches import search_of

from ansor.errors import ArgumentError
from ansor.policy.policy import SearchPolicy
from ansor.policy.published.opevo import OpEvoPolicy
from ansor.policy.registry import POLICIES, policy_named
from ansor.run.settings import Settings

NAMES = {"evolutionary", "opevo", "gbfs", "na2c", "ga", "xgb-sa", "random", "grid"}


def test_every_policy_has_a_name_and_each_published_one_a_filter() -> None:
    assert set(POLICIES) == NAMES | {f"{name}+draft" for name in NAMES - {"evolutionary"}}


def test_a_name_stands_for_a_factory_and_a_factory_for_itself() -> None:
    assert policy_named("evolutionary") is SearchPolicy
    assert policy_named(OpEvoPolicy) is OpEvoPolicy
    assert search_of(policy_named("opevo+draft")).use_filter
    assert not search_of(policy_named("opevo")).use_filter


@pytest.mark.parametrize("policy", ["anneal", "evolutionary+draft", "", 3, None])
def test_another_name_is_refused_with_the_list(policy: object) -> None:
    with pytest.raises(ArgumentError, match=r"policy=.*evolutionary, opevo, gbfs.*grid"):
        policy_named(policy)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="policy="):
        Settings.of({"policy": policy}, 1)
