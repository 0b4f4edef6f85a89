"""The text of targets: functions that backends share."""

from __future__ import annotations

import json
import shlex
from typing import Any

from ansor.targets.backend import Options

_LISTS = ("mattr", "keys")  # options with several values


def canonical(document: dict[str, Any]) -> str:
    """JSON text that is equal for equal documents."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def split(text: str) -> tuple[str, Options, list[str]]:
    """Kind, options and flags without a value of text such as "llvm -mcpu=NAME"."""
    kind, *flags = shlex.split(text)
    bare = [flag for flag in flags if "=" not in flag]
    return kind, dict(_option(flag) for flag in flags if flag not in bare), bare


def _option(flag: str) -> tuple[str, Any]:
    """One "-option=value" as a pair.

    Raises:
        ValueError: not of that form.
    """
    key, _, value = flag.lstrip("-").partition("=")
    if not (flag.startswith("-") and key and value):
        raise malformed(flag)
    if key in _LISTS:
        return key, value.split(",")
    return key, int(value) if key == "num-cores" else value


def malformed(flag: str) -> ValueError:
    """The error for a flag that is no option."""
    return ValueError(f"{flag!r} is not of the form -option=value")
