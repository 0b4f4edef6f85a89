"""Programs as JSON text and back: a list of steps and a list of small integers."""

from __future__ import annotations

import dataclasses
import itertools
import json
from functools import cache, lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from ansor.program.program import Program
from ansor.program.steps import Step


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
    """Inverse of `encode`.

    Raises:
        ValueError: the text is not a program of this version.
    """
    try:
        document = json.loads(text)
        steps = _steps(json.dumps(document["steps"]))
        values = {hole: tuple(map(int, row)) for hole, row in document["values"].items()}
        return Program(document["sketch"], steps, values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a program of this version: {error!r}") from error


@lru_cache(maxsize=1024)
def _steps(text: str) -> tuple[Step, ...]:
    """All programs of a sketch have the same steps."""
    return tuple(_read(Step.kinds[name], fields) for name, fields in json.loads(text))


def _read(kind: Any, value: Any) -> Any:
    """What JSON made of a value of this type: of a dataclass, a tuple, or what JSON knows."""
    if dataclasses.is_dataclass(kind):
        make: Any = kind
        hints = _hints(make)
        return make(**{key: _read(hints[key], part) for key, part in value.items()})
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        kinds = itertools.repeat(first) if others == [...] else (first, *others)
        return tuple(_read(each, part) for each, part in zip(kinds, value, strict=False))
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
