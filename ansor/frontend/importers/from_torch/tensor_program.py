"""An exported program as a function of tensors alone: constants, state and outputs set apart."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from ansor.errors import UnsupportedError
from ansor.frontend.calling import CONSTANT, LIST, NAMED, TENSOR, TUPLE, Calling, Structure


@dataclass(frozen=True, eq=False)
class TensorProgram:
    """A decomposed program that takes and returns tensors in a row.

    Attributes:
        program: its user inputs are the tensors among the arguments, then the state; its outputs
            are the tensors among the results, then the state's new values.
        calling: how the original is called.
        state: initial values of the buffers that are written, by name.
    """

    program: ExportedProgram
    calling: Calling
    state: Mapping[str, torch.Tensor]


def tensor_program(program: ExportedProgram, parameters: Sequence[str]) -> TensorProgram:
    """Changes a decomposed program in place.

    Args:
        program: a program of ours alone.
        parameters: names of the arguments by position.

    Raises:
        UnsupportedError: the model writes to its inputs, or returns a value that is neither a
            tensor nor a plain constant.
    """
    calling = _calling(program, parameters)
    outputs = program.graph_signature.output_specs
    _refuse_written_inputs(outputs)
    buffers = dict(program.named_buffers())
    written = [str(s.target) for s in outputs if s.kind is OutputKind.BUFFER_MUTATION]
    state = {name: buffers[name] for name in written}
    _arrange_inputs(program, written)
    _arrange_outputs(program)
    return TensorProgram(program, calling, state)


def parameter_names(forward: Any) -> tuple[str, ...]:
    """Names of a function's positional parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(forward).parameters.values()
    return tuple(parameter.name for parameter in found if parameter.kind in kinds)


def _refuse_written_inputs(outputs: Sequence[OutputSpec]) -> None:
    for spec in outputs:
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            raise UnsupportedError(
                f"the model writes to its input {spec.target!r}", "let it write to a copy"
            )


def _calling(program: ExportedProgram, parameters: Sequence[str]) -> Calling:
    signature = program.graph_signature
    inputs = [s.arg for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
    arguments = _Leaves(inputs)
    in_spec = program.call_spec.in_spec
    args, kwargs = in_spec.children()
    named: dict[str, Structure] = {}
    for position, spec in enumerate(args.children()):
        name = parameters[position] if position < len(parameters) else f"argument{position}"
        named[name] = arguments.structure(spec)
    for name, spec in zip(kwargs.context or (), kwargs.children(), strict=True):
        named[str(name)] = arguments.structure(spec)
    results = [s.arg for s in signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    result = _Leaves(results).structure(program.call_spec.out_spec)
    return Calling(named, arguments.count, result)


class _Leaves:
    """Turns PyTorch's descriptions of nested values into ours; numbers the tensors.

    Args:
        leaves: the program's inputs or outputs in order.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self._leaves = iter(leaves)
        self.count = 0  # tensors up to now

    def structure(self, spec: Any) -> Structure:
        """The structure of the next value."""
        if spec.is_leaf():
            return self._leaf(next(self._leaves))
        parts = tuple(map(self.structure, spec.children()))
        if spec.type is list:
            return Structure(LIST, parts=parts)
        names = _names(spec, len(parts))
        return Structure(NAMED if names else TUPLE, names=names, parts=parts)

    def _leaf(self, leaf: Any) -> Structure:
        if isinstance(leaf, TensorArgument):
            self.count += 1
            return Structure(TENSOR, self.count - 1)
        if isinstance(leaf, ConstantArgument):
            return Structure(CONSTANT, value=leaf.value)
        raise UnsupportedError(
            f"{getattr(leaf, 'name', leaf)!r} is neither a tensor nor a constant but depends on "
            f"the data ({type(leaf).__name__})",
            "let the model compute it from its inputs, or fix it",
        )


def _names(spec: Any, count: int) -> tuple[str, ...]:
    """Names of the parts of a dictionary, a dataclass or the like; none of a tuple's."""
    context = spec.context
    while isinstance(context, list | tuple) and len(context) != count and context:
        # `defaultdict` keeps its factory first, dataclasses their fields of None last.
        context = next((part for part in context if isinstance(part, list | tuple)), ())
    if count and isinstance(context, list | tuple) and isinstance(context[0], list | tuple):
        context = context[0]
    is_named = isinstance(context, list | tuple) and len(context) == count
    return tuple(map(str, context)) if is_named else ()


def _arrange_inputs(program: ExportedProgram, state: Sequence[str]) -> None:
    """User inputs that are tensors first, then the state as further ones, then the weights."""
    specs = program.graph_signature.input_specs
    users = [s for s in specs if s.kind is InputKind.USER_INPUT]
    tensors = [s for s in users if isinstance(s.arg, TensorArgument)]
    for spec in users:
        if spec not in tensors:
            _erase(program, spec.arg.name)
    written = {s.target: s for s in specs if s.kind is InputKind.BUFFER and s.target in state}
    kept = [_as_input(written[name]) for name in state]
    weights = [s for s in specs if s.kind is not InputKind.USER_INPUT and s.target not in written]
    program.graph_signature.input_specs[:] = [*tensors, *kept, *weights]


def _erase(program: ExportedProgram, name: str) -> None:
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name == name and not node.users:
            program.graph.erase_node(node)


def _as_input(spec: InputSpec) -> InputSpec:
    return replace(spec, kind=InputKind.USER_INPUT, target=None, persistent=None)


def _arrange_outputs(program: ExportedProgram) -> None:
    """The tensors among the results first, then the new state."""
    specs = program.graph_signature.output_specs
    output = program.graph.output_node()
    pairs = list(zip(output.args[0], specs, strict=True))
    results = [(n, s) for n, s in pairs if s.kind is OutputKind.USER_OUTPUT]
    tensors = [(n, s) for n, s in results if isinstance(s.arg, TensorArgument)]
    written = [(n, s) for n, s in pairs if s.kind is OutputKind.BUFFER_MUTATION]
    output.args = (tuple(node for node, _ in (*tensors, *written)),)
    kept = [s for _, s in tensors]
    program.graph_signature.output_specs[:] = [*kept, *map(_as_output, (s for _, s in written))]


def _as_output(spec: OutputSpec) -> OutputSpec:
    return replace(spec, kind=OutputKind.USER_OUTPUT, target=None)


def random_nodes(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    """The operators that draw random numbers."""
    for node in program.graph.nodes:
        if _draws_numbers(node):
            yield node


def _draws_numbers(node: torch.fx.Node) -> bool:
    """Whether an operator draws random numbers: recurrent layers only for dropout in training."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    return bool(given.get("train", True)) and given.get("dropout", 1.0) != 0.0
