"""The derivation of sketches as a graph: states, and the rules between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.program.steps import CacheRead, FuseConsumer, MultiLevelTile, Step
from ansor.sketch.generate import generate
from ansor.sketch.rule import Derivation, Rule, RuleContext
from ansor.sketch.rules import CPU_RULES
from ansor.sketch.state import State
from ansor.targets.cpu.machine import Hardware
from docs.website.example import MACHINE, example
from docs.website.svg import BLUE, GREEN, Drawing, box_height

_BOX, _GAP, _ROW, _TOP = 205.0, 160.0, 84.0, 40.0  # pixels


@dataclass(eq=False)
class Node:
    """A state, the rule that made it, and the states that are derived from it."""

    state: State
    rule: str = ""
    added: tuple[Step, ...] = ()
    children: list[Node] = field(default_factory=list)


def derivation() -> Node:
    """The initial state with all states below it, recorded during a call of `generate`."""
    nodes: dict[int, Node] = {}
    states: list[State] = []  # kept alive: their identities are the keys

    def recorded(rule: Rule[Hardware]) -> Rule[Hardware]:
        def apply(state: State, context: RuleContext[Hardware]) -> Derivation:
            result = rule(state, context)
            states.append(state)
            parent = nodes.setdefault(id(state), Node(state))
            for made in result.states:
                states.append(made)
                node = Node(made, rule.__name__, made.steps[len(state.steps) :])
                nodes[id(made)] = node
                parent.children.append(node)
            return result

        return apply

    generate(example(), MACHINE, [recorded(rule) for rule in CPU_RULES])
    return nodes[id(states[0])]


def draw() -> str:
    """The drawing."""
    root = derivation()
    rows: dict[int, float] = {}
    leaves = _place(root, 0, rows)
    depth = _depth(root)
    drawing = Drawing(_BOX * depth + _GAP * (depth - 1) + 40, _TOP + _ROW * leaves + 10)
    drawing.text(20, 22, "blue: a state with stages to visit; green: a sketch")
    _draw(drawing, root, 0, rows)
    return drawing.to_text()


def _place(node: Node, first: int, rows: dict[int, float]) -> int:
    """Gives each node a row; returns the number of leaves below it."""
    if not node.children:
        rows[id(node)] = float(first)
        return 1
    count = 0
    for child in node.children:
        count += _place(child, first + count, rows)
    rows[id(node)] = sum(rows[id(child)] for child in node.children) / len(node.children)
    return count


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, node.children), default=0)


def _draw(drawing: Drawing, node: Node, column: int, rows: Mapping[int, float]) -> None:
    x, y = 20 + column * (_BOX + _GAP), _TOP + rows[id(node)] * _ROW
    lines = _lines(node)
    drawing.box(x, y, _BOX, lines, BLUE if node.state.remaining else GREEN)
    for child in node.children:
        there = _TOP + rows[id(child)] * _ROW + box_height(_lines(child)) / 2
        begin, end = x + _BOX, x + _BOX + _GAP
        here = y + box_height(lines) / 2
        drawing.arrow([(begin, here), (begin + 12, there), (end, there)])
        drawing.text(begin + 16, there - 5, _shown(child.rule))
        _draw(drawing, child, column + 1, rows)


def _shown(rule: str) -> str:
    return rule.replace("multi_level_tile_with_fusion", "tile with fusion").replace("_", " ")


def _lines(node: Node) -> list[str]:
    added = [_step(step) for step in node.added]
    if node.state.remaining:
        return [*added, f"next stage: {node.state.current}"]
    sketch = complete(node.state, MACHINE, SketchConfig())
    return [*added, f"{len(sketch.decisions)} decisions, {sketch.space_size:.1e} programs"]


def _step(step: Step) -> str:
    if isinstance(step, MultiLevelTile):
        return f"tile {step.stage}: {step.structure}"
    if isinstance(step, FuseConsumer):
        return f"fuse {step.consumer} at level {step.level}"
    if isinstance(step, CacheRead):
        return f"copy {step.buffer}: {step.copy}"
    return type(step).__name__
