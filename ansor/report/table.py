"""The per-task table of a tuned network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def render(
    tasks: Sequence[Mapping[str, Any]], latency_s: float | None, peak_flops: float | None
) -> str:
    """Plain text; `latency_s` is the network's, measured as a whole."""
    lines = []
    for task in tasks:
        lines.append(str(dict(task)))
    lines.append(f"network {latency_s}")
    return "\n".join(lines)
