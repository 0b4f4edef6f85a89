"""Control flow that is known at import: branches are chosen, loops are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper
from tvm import relax

from ansor.config import IMPORTS
from ansor.errors import OperatorError
from ansor.frontend.importers.conversion import shape_of
from ansor.frontend.rewrite import constant

FLOW = ("If", "Loop", "Scan")

Values = dict[str, Any]
Run = Callable[[Sequence[Any], Values], None]  # adds the results of nodes to the values


def control_flow(
    bb: relax.BlockBuilder, run: Run, node: Any, operands: Sequence[Any], values: Values
) -> Sequence[Any]:
    """The results of If, Loop or Scan.

    Args:
        bb: where expressions are bound.
        run: converts the nodes of a branch or a step.
        node: of the control flow.
        operands: its operands.
        values: results of the nodes around it, by name.

    Raises:
        OperatorError: the control flow depends on values of the inputs.
    """
    flow = _Flow(bb, run, node, values)
    return {"If": flow.branch, "Loop": flow.loop, "Scan": flow.scan}[node.op_type](operands)


class _Flow:
    def __init__(self, bb: relax.BlockBuilder, run: Run, node: Any, values: Values) -> None:
        self._bb, self._run, self._values = bb, run, values
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def branch(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The branch that a known condition chooses."""
        chosen = _known(operands[0])
        return self._step(self._attributes["then_branch" if chosen else "else_branch"], [])

    def loop(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Step after step while the count and the condition are known."""
        body = self._attributes["body"]
        count = IMPORTS.max_steps + 1 if operands[0] is None else _known(operands[0])
        goes_on, states = operands[1], list(operands[2:])
        collected: list[list[Any]] = [[] for _ in body.output[1 + len(states) :]]
        step = 0
        while step < count and (goes_on is None or bool(_known(goes_on))):
            _check_length(step + 1)
            number = np.array(step, np.int64)
            given = np.array(True) if goes_on is None else goes_on
            goes_on, *results = self._step(body, [number, given, *states])
            states, step = results[: len(states)], step + 1
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
        if collected and not step:
            raise OperatorError("it has no steps, so that the shape of its results is not known")
        return [*states, *(self._stacked(parts, 0) for parts in collected)]

    def scan(self, operands: Sequence[Any]) -> Sequence[Any]:
        """A step for each slice of the operands."""
        body, attributes = self._attributes["body"], self._attributes
        count = attributes["num_scan_inputs"]
        states, scanned = list(operands[:-count]), list(operands[-count:])
        axes = list(attributes.get("scan_input_axes") or [0] * count)
        backwards = list(attributes.get("scan_input_directions") or [0] * count)
        length = _shape(scanned[0])[axes[0]]
        _check_length(length)
        more = len(body.output) - len(states)
        collected: list[list[Any]] = [[] for _ in range(more)]
        for step in range(length):
            places = [length - 1 - step if back else step for back in backwards]
            slices = [self._slice(*row) for row in zip(scanned, axes, places, strict=True)]
            results = self._step(body, [*states, *slices])
            states = list(results[: len(states)])
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
        return [*states, *self._outputs(collected)]

    def _outputs(self, collected: list[list[Any]]) -> list[Any]:
        axes = self._attributes.get("scan_output_axes") or [0] * len(collected)
        backwards = self._attributes.get("scan_output_directions") or [0] * len(collected)
        rows = zip(collected, axes, backwards, strict=True)
        return [self._stacked(p[::-1] if back else p, axis) for p, axis, back in rows]

    def _step(self, graph: Any, given: list[Any]) -> list[Any]:
        inner = dict(self._values)
        inner.update({t.name: numpy_helper.to_array(t) for t in graph.initializer})
        inner.update(zip((value.name for value in graph.input), given, strict=False))
        self._run(graph.node, inner)
        return [inner[value.name] for value in graph.output]

    def _slice(self, value: Any, axis: int, place: int) -> Any:
        if isinstance(value, np.ndarray):
            return np.take(value, place, axis)
        shape = list(_shape(value))
        axis = axis % len(shape)
        part = self._bb.emit(relax.op.strided_slice(value, [axis], [place], [place + 1]))
        return self._bb.emit(relax.op.reshape(part, shape[:axis] + shape[axis + 1 :]))

    def _stacked(self, parts: list[Any], axis: int) -> Any:
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.stack(parts, axis)
        axis = axis % (len(_shape(parts[0])) + 1)
        values = [constant(p) if isinstance(p, np.ndarray) else p for p in parts]
        rows = [self._bb.emit(relax.op.expand_dims(value, axis)) for value in values]
        return rows[0] if len(rows) == 1 else self._bb.emit(relax.op.concat(rows, axis))


def _known(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        raise OperatorError("is control flow", "export the model with fixed branches")
    return value.reshape(-1)[0]


def _check_length(steps: int) -> None:
    if steps > IMPORTS.max_steps:
        raise OperatorError(f"it has more than {IMPORTS.max_steps} steps, which are unrolled")


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else shape_of(value)
