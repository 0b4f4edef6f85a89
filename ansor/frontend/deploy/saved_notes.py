"""Data classes in the notes of saved networks, from any version of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def known_fields(kind: Callable[..., T], row: Mapping[str, Any]) -> T:
    """An instance of a data class, without fields that this version does not have.

    Fields that are missing in the notes need defaults.
    """
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in row.items() if name in names})
