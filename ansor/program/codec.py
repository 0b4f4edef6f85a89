"""Programs as JSON text and back: a list of steps and a list of small integers."""

from __future__ import annotations

import dataclasses
import json
from typing import get_args

from ansor.program.program import Program
from ansor.program.steps import Step

_TYPES = {cls.__name__: cls for cls in get_args(Step)}


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
        steps = tuple(_TYPES[name](**_tuples(fields)) for name, fields in document["steps"])
        values = {hole: tuple(map(int, row)) for hole, row in document["values"].items()}
        return Program(document["sketch"], steps, values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a program of this version: {error!r}") from error


def _tuples(fields: dict[str, object]) -> dict[str, object]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
