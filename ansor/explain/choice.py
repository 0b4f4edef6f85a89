"""Finds the task that a user names."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeVar

from ansor.config import EXPLAIN
from ansor.errors import ArgumentError

T = TypeVar("T")


def chosen(
    named: Mapping[str, T], wanted: str | None, keys: Mapping[str, str] = MappingProxyType({})
) -> T:
    """The one element with a name, or with a name or key that contains the text.

    Args:
        named: elements by name.
        wanted: name, or a part that fits one element only; None if there is one element.
        keys: of the elements, by name.

    Raises:
        ArgumentError: no name fits, or several do. The message lists names.
    """
    fitting = [n for n in named if wanted is None or wanted in n or wanted in keys.get(n, "")]
    if wanted is not None and wanted in named:
        fitting = [wanted]
    if len(fitting) == 1:
        return named[fitting[0]]
    if fitting:
        what = "there are several tasks" if wanted is None else "several tasks fit"
        raise ArgumentError("task", wanted, f"{what}; give one of {', '.join(fitting)}")
    near = get_close_matches(wanted or "", named, EXPLAIN.near_names, cutoff=0.0)
    raise ArgumentError("task", wanted, f"no such task; near names are {', '.join(near)}; give one")
