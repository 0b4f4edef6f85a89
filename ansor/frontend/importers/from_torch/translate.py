"""A decomposed program as a Relax module, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import tvm
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from tvm import relax

from ansor.errors import UnsupportedError, UserError
from ansor.frontend.deploy.convert import dtype_name
from ansor.frontend.importers.from_torch.capture import array_of
from ansor.frontend.importers.from_torch.converters import converter_for
from ansor.frontend.rewrite import constant


class Translator:
    """The state of a translation.

    Attributes:
        env: the expression of each node that is translated.
        block_builder: where expressions are bound.
    """

    def __init__(self) -> None:
        self.env: dict[torch.fx.Node, Any] = {}
        self.block_builder = relax.BlockBuilder()

    def operands(self, argument: Any) -> Any:
        """An argument of a node with expressions in place of nodes, nested as it is."""
        return torch.fx.map_arg(argument, lambda node: self.env[node])

    def module(self, program: ExportedProgram) -> tvm.IRModule:
        """The program as the Relax function `main` of its user inputs; weights are constants.

        Raises:
            UnsupportedError: an operator that cannot be converted; it is named with its layer.
        """
        values = program_tensors(program)
        users = [
            s.arg.name for s in program.graph_signature.input_specs if s.arg.name not in values
        ]
        nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
        for name, tensor in values.items():
            if name in nodes:
                self.env[nodes[name]] = constant(array_of(tensor))
        parameters = [_variable(nodes[name]) for name in users]
        self.env.update({nodes[name]: var for name, var in zip(users, parameters, strict=True)})
        with self.block_builder.function("main", parameters):
            with self.block_builder.dataflow():
                outputs = [self._expression(out) for out in self._walk(program)]
                result = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
                returned = self.block_builder.emit_output(result)
            self.block_builder.emit_func_output(returned)
        return self.block_builder.get()

    def _walk(self, program: ExportedProgram) -> Any:
        for node in program.graph.nodes:
            if node.op == "get_attr":
                self.env[node] = getattr(program.graph_module, node.target)
            elif node.op == "call_function":
                with named_errors(node):
                    self.env[node] = converter_for(node)(node, self)
        return program.graph.output_node().args[0]

    def _expression(self, node: torch.fx.Node) -> Any:
        return self.env[node]


def program_tensors(program: ExportedProgram) -> Mapping[str, torch.Tensor]:
    """Weights, buffers and constants of a program, by the names of their placeholders."""
    buffers = dict(program.named_buffers())
    found = {}
    for spec in program.graph_signature.input_specs:
        name, target = spec.arg.name, spec.target
        if spec.kind is InputKind.PARAMETER:
            found[name] = program.state_dict[str(target)]
        elif spec.kind is InputKind.BUFFER:
            found[name] = buffers[str(target)]
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            found[name] = program.constants[str(target)]
    return found


def _variable(node: torch.fx.Node) -> Any:
    value = node.meta["val"]
    shape = [int(extent) for extent in value.shape]
    return relax.Var(node.name, relax.TensorType(shape, dtype_name(value)))


def _operator(node: torch.fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


@contextmanager
def named_errors(node: torch.fx.Node) -> Iterator[None]:
    """Errors within name the operator and its layer.

    Raises:
        UnsupportedError: any error was raised within; its first line is the reason.
    """
    try:
        yield
    except Exception as error:  # TVM raises assertions, type, value, key and internal errors
        reason, remedy = _reason_and_remedy(error)
        raise UnsupportedError(
            f"cannot import operator {_operator(node)} in {layer_of(node)} "
            f"of the PyTorch model: {reason}",
            remedy,
        ) from error


def _reason_and_remedy(error: Exception) -> tuple[str, str]:
    """The error of an operator in one line, and the remedy."""
    if isinstance(error, UserError):
        return error.problem, error.remedy
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return reason, "replace the operator in the model"


def layer_of(node: torch.fx.Node) -> str:
    """The layer that a node comes from, as messages name it."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return f"layer {path}" if path else "the top-level forward"
