"""PyTorch models as Relax modules: capture, decomposition, conversion."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import tvm
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.deploy.convert import dtype_name
from ansor.frontend.importers.from_torch.capture import (
    Examples,
    array_of,
    examples_for,
    export_program,
    resized,
)
from ansor.frontend.importers.from_torch.decompositions import decompositions
from ansor.frontend.importers.from_torch.source import TorchSource
from ansor.frontend.importers.from_torch.tensor_program import (
    TensorProgram,
    parameter_names,
    random_nodes,
    tensor_program,
)
from ansor.frontend.importers.from_torch.translate import (
    Translator,
    layer_of,
    program_tensors,
)
from ansor.frontend.importers.sizes import Sizes
from ansor.frontend.importers.source import ImportedModel
from ansor.frontend.signature import InputSpec, check_dtype, static_extent


def import_torch(model: Any, example_inputs: object, sizes: Sizes) -> ImportedModel:
    """A `torch.nn.Module` (with example inputs) or an `ExportedProgram`, its weights as constants.

    A module is captured in eval mode; its own mode does not change.

    Raises:
        ArgumentError: missing or wrong `example_inputs` or sizes.
        UnsupportedError: PyTorch cannot export the model, its calls differ, or an operator cannot
            be converted.
    """
    with _quiet():
        module, examples, program = _captured(model, example_inputs, sizes)
        parts = _tensor_program(program, parameter_names(module.forward))
        specs = program_inputs(parts.program)
        mod = Translator().module(parts.program)
        state = tuple(map(array_of, parts.state.values()))
        source = TorchSource(
            model=module,
            calling=parts.calling,
            num_arguments=len(examples.args),
            program=parts.program,
            state=tuple(parts.state),
            inputs=specs,
            examples=(*map(array_of, tensors_of(examples)), *state),
            import_module=_import_alone,
        )
    return ImportedModel(mod, "main", specs, parts.calling, state, source)


def _captured(
    model: Any, example_inputs: object, sizes: Sizes
) -> tuple[torch.nn.Module, Examples, ExportedProgram]:
    """The module, the arguments of a run, and the program that PyTorch makes of both."""
    if isinstance(model, ExportedProgram):
        return _recaptured(model, example_inputs, sizes)
    examples = resized(examples_for(model, example_inputs), parameter_names(model.forward), sizes)
    return model, examples, export_program(model, examples)


def _recaptured(
    program: ExportedProgram, example_inputs: object, sizes: Sizes
) -> tuple[torch.nn.Module, Examples, ExportedProgram]:
    """A program that is exported already; anew, with static shapes, if these are given."""
    module = program.module(check_guards=False)
    names = parameter_names(module.forward)
    if example_inputs is not None:
        examples = resized(examples_for(module, example_inputs), names, sizes)
        return module, examples, export_program(module, examples)
    if program.example_inputs is None:
        remedy = "the program holds no example inputs; give some"
        raise ArgumentError("example_inputs", None, remedy)
    args, kwargs = program.example_inputs
    examples = Examples(tuple(args), kwargs)
    if not sizes and sizes.default is None:
        program_inputs(program)  # refuses dynamic dimensions
        return module, examples, program
    static = resized(examples, names, _as_shapes(program, sizes))
    return module, static, export_program(module, static)


def _as_shapes(program: ExportedProgram, sizes: Sizes) -> Sizes:
    """The sizes as shapes of inputs, with those of the example for all other dimensions."""
    values = {
        node.name: node.meta["val"].shape
        for node in program.graph.find_nodes(op="placeholder")
        if isinstance(node.meta.get("val"), torch.Tensor)
    }
    symbols = {str(e) for shape in values.values() for e in shape if not isinstance(e, int)}
    sizes.check_names(list(values), sorted(symbols))
    found = {
        name: [sizes.dims.get(str(extent), _hint(extent)) for extent in shape]
        for name, shape in values.items()
        if any(_is_fixed(extent, sizes) for extent in shape)
    }
    return Sizes(found | dict(sizes.shapes))


def _is_fixed(extent: Any, sizes: Sizes) -> bool:
    """Whether a dimension is dynamic and has a size."""
    is_dynamic = not isinstance(extent, int)
    return str(extent) in sizes.dims or (is_dynamic and sizes.default is not None)


def _hint(extent: Any) -> int:
    """The extent in the run that the program was exported with."""
    return extent if isinstance(extent, int) else int(extent.node.hint)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses warnings of PyTorch's exporter about its own code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _tensor_program(program: ExportedProgram, names: Sequence[str]) -> TensorProgram:
    _check_weights(program)
    decomposed = _decomposed(program)
    for node in random_nodes(decomposed):
        raise UnsupportedError(
            f"operator {node.target} in {layer_of(node)} draws random numbers",
            "let the model take them as an input",
        )
    return tensor_program(decomposed, names)


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    try:
        return program.run_decompositions(decompositions())
    except Exception as error:  # PyTorch raises errors of many kinds
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnsupportedError(
            f"PyTorch cannot decompose the model: {reason}",
            "export the model with another version of PyTorch",
        ) from error


def program_inputs(program: ExportedProgram) -> tuple[InputSpec, ...]:
    """The user inputs that are tensors.

    Raises:
        UnsupportedError: a dynamic shape, an unsupported dtype.
    """
    specs = program.graph_signature.input_specs
    users = {spec.arg.name for spec in specs if spec.kind is InputKind.USER_INPUT}
    nodes = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    ordered = [spec.arg.name for spec in specs if spec.arg.name in users]
    return tuple(
        _input_spec(nodes[name])
        for name in ordered
        if name in nodes and isinstance(nodes[name].meta.get("val"), torch.Tensor)
    )


def _input_spec(node: torch.fx.Node) -> InputSpec:
    value = node.meta["val"]
    check_dtype(f"input {node.name!r}", dtype_name(value))
    shape = [
        static_extent(f"input {node.name!r}", axis, extent)
        for axis, extent in enumerate(value.shape)
    ]
    return InputSpec(node.name, tuple(shape), dtype_name(value))


def _check_weights(program: ExportedProgram) -> None:
    tensors = program_tensors(program)
    for spec in program.graph_signature.input_specs:
        if spec.arg.name in tensors:
            check_dtype(f"weight {spec.target!r}", dtype_name(tensors[spec.arg.name]))


def tensors_of(examples: Examples) -> list[torch.Tensor]:
    """The tensors among the arguments, in a row."""
    leaves = torch.utils._pytree.tree_leaves((examples.args, dict(examples.kwargs)))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _import_alone(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> tvm.IRModule:
    with _quiet():
        program = export_program(module, Examples(tuple(tensors), {}))
        names = [f"operand{place}" for place in range(len(tensors))]
        return Translator().module(_tensor_program(program, names).program)
