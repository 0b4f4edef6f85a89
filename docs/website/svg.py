"""Boxes, arrows and text as an SVG drawing."""

from __future__ import annotations

from xml.etree import ElementTree

# Pale fills that black text can be read on.
BLUE, GREEN, ORANGE, RED, GREY = "#d6e6f5", "#d5efdf", "#fde9c9", "#f8d6d0", "#eeeeee"
LINE_HEIGHT = 15  # pixels
_INK = "#222222"


class Drawing:
    """A drawing in pixels; the origin is the upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        self._root = ElementTree.Element(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:g} {height:g}",
            attrib={"font-family": "sans-serif", "font-size": "12"},
        )
        marker = self._add(
            "marker", id="head", viewBox="0 0 8 8", refX="8", refY="4", orient="auto-start-reverse"
        )
        ElementTree.SubElement(marker, "path", d="M0 0 L8 4 L0 8 z", fill=_INK)
        self._add("rect", width=f"{width:g}", height=f"{height:g}", fill="white")

    def box(self, x: float, y: float, width: float, lines: list[str], fill: str) -> float:
        """A box with lines of text; returns its height."""
        height = box_height(lines)
        place = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
        self._add("rect", **place, rx="4", fill=fill, stroke=_INK)
        for number, line in enumerate(lines):
            self.text(x + 8, y + 18 + LINE_HEIGHT * number, line)
        return height

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """A line of text on its base line."""
        attributes = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor, "fill": _INK}
        self._add("text", **attributes).text = text

    def arrow(self, points: list[tuple[float, float]]) -> None:
        """An arrow along straight pieces."""
        listed = " ".join(f"{x:g},{y:g}" for x, y in points)
        style = {"fill": "none", "stroke": _INK, "marker-end": "url(#head)"}
        self._add("polyline", points=listed, **style)

    def to_text(self) -> str:
        """The file."""
        ElementTree.indent(self._root)
        return f"{ElementTree.tostring(self._root, encoding='unicode')}\n"

    def _add(self, tag: str, **attributes: str) -> ElementTree.Element:
        return ElementTree.SubElement(self._root, tag, attributes)


def box_height(lines: list[str]) -> float:
    """The height of a box with these lines."""
    return LINE_HEIGHT * len(lines) + 11
