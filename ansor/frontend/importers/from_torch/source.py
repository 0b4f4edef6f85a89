"""A PyTorch model as the reference for its import."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import tvm
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from ansor.frontend.calling import Calling, Structure
from ansor.frontend.importers.from_torch.capture import array_of, eval_mode, tensor_of
from ansor.frontend.importers.from_torch.ties import FirstOfEquals
from ansor.frontend.importers.from_torch.translate import layer_of, program_tensors
from ansor.frontend.importers.source import Array, NodeCase
from ansor.frontend.signature import InputSpec

Import = Callable[[torch.nn.Module, Sequence[torch.Tensor]], tvm.IRModule]


@dataclass(frozen=True, eq=False)
class TorchSource:
    """See `SourceModel`.

    Attributes:
        model: the user's module, or an exported program's.
        calling: of the model.
        num_arguments: number of positional arguments.
        program: decomposed; its user inputs are `inputs`.
        state: names of the buffers whose values are the last inputs and the last outputs.
        import_module: imports a module with its inputs, for nodes alone.
    """

    model: torch.nn.Module
    calling: Calling
    num_arguments: int
    program: ExportedProgram
    state: tuple[str, ...]
    inputs: tuple[InputSpec, ...]
    examples: tuple[Array, ...]
    import_module: Import
    framework: str = "PyTorch"

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Runs the model itself, in eval mode; a model with state is copied before."""
        count = len(arrays) - len(self.state)
        tensors = [tensor_of(array) for array in arrays]
        model = copy.deepcopy(self.model) if self.state else self.model
        buffers = dict(model.named_buffers())
        for name, value in zip(self.state, tensors[count:], strict=True):
            buffers[name].detach().copy_(value)
        values = [argument(part, tensors) for part in self.calling.parameters.values()]
        names = list(self.calling.parameters)[self.num_arguments :]
        kwargs = dict(zip(names, values[self.num_arguments :], strict=True))
        with torch.no_grad(), FirstOfEquals(), eval_mode(model):
            result = model(*values[: self.num_arguments], **kwargs)
        found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        written = dict(model.named_buffers())
        return tuple(map(array_of, [*found, *(written[name] for name in self.state)]))

    def nodes(self, arrays: Sequence[Array]) -> Iterator[NodeCase]:
        """See `SourceModel`."""
        found: list[NodeCase] = []
        values = dict(program_tensors(self.program))
        users = [
            spec.arg.name
            for spec in self.program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        ]
        values.update(zip(users, map(tensor_of, arrays), strict=True))
        placeholders = self.program.graph.find_nodes(op="placeholder")
        watcher = _Watcher(self.program.graph_module, found, self.import_module)
        with torch.no_grad(), FirstOfEquals():
            watcher.run(*(values[node.name] for node in placeholders), enable_io_processing=False)
        yield from found


def argument(structure: Structure, tensors: Sequence[torch.Tensor]) -> Any:
    """An argument of the model, of the tensors in a row."""
    if structure.kind == "tensor":
        return tensors[structure.position]
    if structure.kind == "constant":
        return structure.value
    parts = [argument(part, tensors) for part in structure.parts]
    if structure.kind == "named":
        return dict(zip(structure.names, parts, strict=True))
    return parts if structure.kind == "list" else tuple(parts)


class _Watcher(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a graph and collects each distinct operator with its values.

    Args:
        found: list of the cases.
    """

    def __init__(
        self, graph: torch.fx.GraphModule, found: list[NodeCase], import_module: Import
    ) -> None:
        super().__init__(graph)
        self._found, self._import = found, import_module
        self._known: set[Any] = set()

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op != "call_function" or not isinstance(n.target, torch._ops.OpOverload):
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = super().run_node(n)
        case = _case(n, args, kwargs, result, self._import)
        key = (n.target, str(pytree.tree_map(_shape, (args, dict(kwargs)))))
        if key not in self._known:
            self._known.add(key)
            self._found.append(case)
        return result


def _shape(value: Any) -> Any:
    is_tensor = isinstance(value, torch.Tensor)
    return (tuple(value.shape), str(value.dtype)) if is_tensor else value


def _case(
    node: torch.fx.Node, args: Any, kwargs: Mapping[str, Any], result: Any, import_module: Import
) -> NodeCase:
    leaves, structure = pytree.tree_flatten((args, dict(kwargs)))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[place].clone() for place in places]
    constants = [None if place in places else leaf for place, leaf in enumerate(leaves)]
    alone = _Alone(node.target, constants, structure, places)
    expected = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return NodeCase(
        operator=str(node.target),
        place=f"{layer_of(node)} (node {node.name!r})",
        inputs=tuple(map(array_of, tensors)),
        expected=tuple(map(array_of, expected)),
        import_alone=lambda: import_module(alone, tensors),
    )


class _Alone(torch.nn.Module):  # type: ignore[misc]
    """A module that calls one operator.

    Args:
        constants: its arguments, flattened; those at `places` are the module's inputs.
        structure: of the arguments.
    """

    def __init__(
        self, target: Any, constants: list[Any], structure: Any, places: list[int]
    ) -> None:
        super().__init__()
        self.target, self.constants, self.structure = target, constants, structure
        self.places = places

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The operator's result."""
        leaves = list(self.constants)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.target(*args, **kwargs)
