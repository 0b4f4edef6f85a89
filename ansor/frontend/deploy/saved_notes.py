"""Data classes in the notes of saved networks, whichever version of this package wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def known_fields(kind: Callable[..., T], row: Mapping[str, Any]) -> T:
    """An instance of a data class; without the fields that only another version has.

    A field that the notes lack needs a default.
    """
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in row.items() if name in names})
