"""Relax modules as imported models."""

from __future__ import annotations

import tvm
from tvm import relax

from ansor.errors import ArgumentError
from ansor.frontend.calling import flat_calling
from ansor.frontend.importers.source import ImportedModel, SourceModel
from ansor.frontend.signature import entry_of, input_specs


def from_relax(mod: tvm.IRModule, source: SourceModel | None = None) -> ImportedModel:
    """A Relax module that holds one function, with its weights bound.

    `source` is the original model.

    Raises:
        ArgumentError: weights are still parameters.
        UnsupportedError: several functions, a dynamic shape, an unsupported dtype.
    """
    entry = entry_of(mod)
    function = mod[entry]
    _check_bound(function)
    specs, result = input_specs(function), function.ret_ty
    is_tuple = isinstance(result, relax.TupleType)
    calling = flat_calling([s.name for s in specs], len(result.fields) if is_tuple else None)
    return ImportedModel(mod, entry, specs, calling, source=source)


def _check_bound(function: relax.Function) -> None:
    attrs = function.attrs or {}
    count = int(attrs.get("num_input", len(function.params)))
    unbound = [str(parameter.name) for parameter in function.params[count:]]
    if unbound:
        remedy = "bind these weights first, with tvm.relax.transform.BindParams"
        raise ArgumentError("model", ", ".join(unbound), remedy)
