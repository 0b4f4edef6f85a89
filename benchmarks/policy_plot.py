"""An SVG drawing of the results of `benchmarks.policies`.

``python -m benchmarks.policy_plot FILE.json FILE.svg``

Each operator has two panels: the best latency by trial and by second. A line is the median over the
seeds, and the area around it reaches from the first to the third quartile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Colours that people with colour blindness tell apart (Okabe and Ito, 2008).
_COLOURS = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
_WIDTH, _HEIGHT, _MARGIN, _LEGEND = 320, 200, 44, 24  # pixels of a panel, its border, a legend row
_LEGEND_COLUMNS = 4  # policies beside each other
_POINTS = 64  # of a line by second
_MOST = 4.0  # times the best of the operator, at the top of a panel
_NO_TIME = 1e-3  # seconds


@dataclass(frozen=True)
class Line:
    """Medians and quartiles of one policy.

    Attributes:
        x: `[N]` trials or seconds.
        quartiles: `[3, N]` latency over the best of the operator, infinite before a success.
    """

    policy: str
    x: Floats
    quartiles: Floats


@dataclass(frozen=True)
class Panel:
    """One coordinate system, logarithmic along both axes."""

    title: str
    unit: str
    lines: tuple[Line, ...]


def plot(document: Mapping[str, Any]) -> str:
    """The drawing of a document that `benchmarks.policies` wrote."""
    curves = document["curves"]
    policies = list(dict.fromkeys(curve["policy"] for curve in curves))
    panels = [
        panel(op, axis, [c for c in curves if c["op"] == op])
        for op in dict.fromkeys(curve["op"] for curve in curves)
        for axis in ("trials", "seconds")
    ]
    legend_rows = -(-len(policies) // _LEGEND_COLUMNS)
    top = _LEGEND * (legend_rows + 1)
    height = top + _HEIGHT * (len(panels) // 2)
    root = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {2 * _WIDTH} {height}",
        attrib={"font-family": "sans-serif", "font-size": "10"},
    )
    _rectangle(root, 0, 0, 2 * _WIDTH, height, "white")
    for number, policy in enumerate(policies):
        _legend(root, number, policy)
    for number, each in enumerate(panels):
        x, y = _WIDTH * (number % 2), top + _HEIGHT * (number // 2)
        _draw(root, each, x, y, policies)
    ElementTree.indent(root)
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


def panel(op: str, axis: str, curves: Sequence[Mapping[str, Any]]) -> Panel:
    """The curves of one operator by "trials" or "seconds"."""
    column = 0 if axis == "trials" else 1
    best_us = min((step[2] for c in curves for step in c["steps"]), default=1.0)
    last = max(float(c[axis]) for c in curves)
    first = 1.0 if axis == "trials" else _first_second(curves)
    x = np.geomspace(first, max(last, first * 2), _POINTS)
    lines = []
    for policy in dict.fromkeys(c["policy"] for c in curves):
        own = [_values(c["steps"], column, x) / best_us for c in curves if c["policy"] == policy]
        with np.errstate(invalid="ignore"):
            quartiles = np.quantile(own, (0.25, 0.5, 0.75), axis=0)
        lines.append(Line(policy, x, np.nan_to_num(quartiles, nan=np.inf, posinf=np.inf)))
    return Panel(f"{op}: latency over the best, by {axis}", axis, tuple(lines))


def _first_second(curves: Sequence[Mapping[str, Any]]) -> float:
    first = [c["steps"][0][1] for c in curves if c["steps"]]
    return max(min(first, default=_NO_TIME), _NO_TIME)


def _values(steps: Sequence[Sequence[float]], column: int, x: Floats) -> Floats:
    """`[N]`: the best microseconds at each position; infinite before the first success."""
    positions = np.asarray([step[column] for step in steps], dtype=np.float64)
    values = np.asarray([np.inf, *(step[2] for step in steps)], dtype=np.float64)
    found: Floats = values[np.searchsorted(positions, x * (1 + 1e-9), side="right")]
    return found


def _draw(
    root: ElementTree.Element, each: Panel, x: float, y: float, policies: Sequence[str]
) -> None:
    """One panel with its axes."""
    left, right = x + _MARGIN, x + _WIDTH - 8
    top, bottom = y + 18, y + _HEIGHT - 26
    low, high = each.lines[0].x[0], each.lines[0].x[-1]

    def across(value: float) -> float:
        return left + (right - left) * math.log(value / low) / math.log(high / low)

    def down(value: float) -> float:
        return bottom - (bottom - top) * math.log(min(value, _MOST)) / math.log(_MOST)

    _text(root, left, y + 12, each.title)
    _rectangle(root, left, top, right - left, bottom - top, "none", "#888888")
    for tick in (1.0, 1.5, 2.0, 3.0, 4.0):
        _text(root, left - 4, down(tick) + 3, f"{tick:g}", "end")
        _path(root, [(left, down(tick)), (right, down(tick))], "#dddddd", 0.5)
    for tick in _decades(low, high):
        _text(root, across(tick), bottom + 12, f"{tick:g}", "middle")
    for line in each.lines:
        colour = _COLOURS[policies.index(line.policy) % len(_COLOURS)]
        dashed = policies.index(line.policy) >= len(_COLOURS)
        lower, middle, upper = (
            [(across(p), down(q)) for p, q in zip(line.x, row, strict=True)]
            for row in line.quartiles
        )
        _area(root, [*lower, *reversed(upper)], colour)
        _path(root, middle, colour, 1.5, dashed)


def _decades(low: float, high: float) -> list[float]:
    """Powers of two or ten in a range: few enough to be read."""
    base = 2.0 if high / low < 2.0**10 else 10.0
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [base**power for power in range(first, last + 1)]


def _legend(root: ElementTree.Element, number: int, policy: str) -> None:
    """The line and the name of a policy."""
    x = 20 + 150.0 * (number % _LEGEND_COLUMNS)
    y = _LEGEND * (number // _LEGEND_COLUMNS + 1)
    colour, dashed = _COLOURS[number % len(_COLOURS)], number >= len(_COLOURS)
    _path(root, [(x, y - 3), (x + 24, y - 3)], colour, 2, dashed)
    _text(root, x + 30, y, policy)


def _text(root: ElementTree.Element, x: float, y: float, text: str, anchor: str = "start") -> None:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ElementTree.SubElement(root, "text", attributes).text = text


def _rectangle(
    root: ElementTree.Element,
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str = "none",
) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    ElementTree.SubElement(root, "rect", place | {"fill": fill, "stroke": stroke})


def _path(
    root: ElementTree.Element,
    points: Sequence[tuple[float, float]],
    colour: str,
    width: float,
    dashed: bool = False,
) -> None:
    style = {"fill": "none", "stroke": colour, "stroke-width": f"{width:g}"}
    dashes = {"stroke-dasharray": "4 2"} if dashed else {}
    ElementTree.SubElement(root, "polyline", {"points": _points(points)} | style | dashes)


def _area(root: ElementTree.Element, points: Sequence[tuple[float, float]], colour: str) -> None:
    style = {"fill": colour, "fill-opacity": "0.12", "stroke": "none"}
    ElementTree.SubElement(root, "polygon", {"points": _points(points)} | style)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.argument("drawing", type=click.Path(path_type=Path))
def main(file: Path, drawing: Path) -> None:
    """Draws the results in FILE."""
    document = json.loads(file.read_text(encoding="utf-8"))
    drawing.write_text(plot(document), encoding="utf-8")


if __name__ == "__main__":
    main()
