"""Programs as JSON text and back: a list of steps and a list of small integers."""

from __future__ import annotations

import dataclasses
import json
from functools import cache, lru_cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ansor.program.program import Program
from ansor.program.steps import Step

_RANGE = range(-(2**31), 2**31)  # of the tables of decisions, int32


def encode(program: Program) -> str:
    """Returns canonical JSON text: equal programs give equal text."""
    steps = [[type(step).__name__, dataclasses.asdict(step)] for step in program.steps]
    document = {
        "sketch": program.sketch,
        "steps": steps,
        "values": {hole: list(row) for hole, row in program.values.items()},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def decode(text: str) -> Program:
    """Inverse of `encode`. The text may be of any origin: it makes steps and integers only.

    Raises:
        ValueError: the text is not a program of this version.
    """
    try:
        document = json.loads(text)
        steps = _steps(json.dumps(document["steps"]))
        values = {hole: tuple(map(_integer, row)) for hole, row in document["values"].items()}
        return Program(_read(str, document["sketch"]), steps, values)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a program of this version: {error!r}") from error


def _integer(value: object) -> int:
    if type(value) is not int or value not in _RANGE:
        raise ValueError(f"{value!r} is no choice of a decision")
    return value


@lru_cache(maxsize=1024)
def _steps(text: str) -> tuple[Step, ...]:
    """All programs of a sketch have the same steps."""
    return tuple(_read(Step.kinds[name], fields) for name, fields in json.loads(text))


def _read(kind: Any, value: Any) -> Any:
    """The value of this type for a JSON value: a dataclass, a tuple, or a type of JSON.

    Raises:
        TypeError: the value is of another type.
    """
    if dataclasses.is_dataclass(kind):
        make: Any = kind
        hints = _hints(make)
        return make(**{key: _read(hints[key], part) for key, part in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_read(each, part) for each, part in _parts(get_args(kind), value))
    if kind is float and type(value) is int:  # JSON's number without a fraction
        return value
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    if type(value) not in kinds:
        raise TypeError(f"{value!r} is not of type {kind}")
    return value


def _parts(kinds: tuple[Any, ...], value: Any) -> list[tuple[Any, Any]]:
    """The values of a tuple with their types."""
    first, *others = kinds
    wanted = [first] * len(value) if others == [...] else [first, *others]
    return list(zip(wanted, _read(list, value), strict=True))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
