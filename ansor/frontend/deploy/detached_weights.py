"""Takes the weights out of a network and puts them back, so that they can be stored apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax

from ansor.frontend.signature import entry_of
from ansor.measure.function_arguments import in_memory
from ansor.targets.host.memory import aligned, huge_block

Array = npt.NDArray[Any]


@relax.expr_functor.mutator
class _Detacher(relax.PyExprMutator):  # type: ignore[misc]
    """Replaces every constant by a new variable and remembers both, in the order of their use."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.variables: list[relax.Var] = []
        self.arrays: dict[str, Array] = {}

    def visit_generic_const_(self, constant: Any) -> Any:
        name = f"weight{len(self.variables)}"
        self.variables.append(relax.Var(name, constant.ty))
        self.arrays[name] = constant.value.numpy()
        return self.variables[-1]


def detach_weights(mod: tvm.IRModule) -> tuple[tvm.IRModule, dict[str, Array]]:
    """The module with its constants as further parameters "weight0" …, and these by name."""
    entry = entry_of(mod)
    function = mod[entry]
    detacher = _Detacher(mod)
    body = detacher.visit_expr(function.body)
    parameters = [*function.params, *detacher.variables]
    bare = relax.Function(parameters, body, function.ret_ty, attrs=function.attrs)
    functions = dict(mod.functions)
    functions[mod.get_global_var(entry)] = bare
    return tvm.IRModule(functions, attrs=mod.attrs), detacher.arrays


def in_huge_pages(arrays: Mapping[str, Array]) -> list[Any]:
    """TVM tensors of the arrays on the host, in one block of huge pages, in the same order."""
    block, first, tensors = huge_block(sum(aligned(a.nbytes) for a in arrays.values())), 0, []
    for array in arrays.values():
        place = block[first : first + array.nbytes]
        place.view(array.dtype).reshape(array.shape)[...] = array
        tensors.append(in_memory(place, array))
        first += aligned(array.nbytes)
    return tensors


def bind_weights(mod: tvm.IRModule, arrays: Mapping[str, Array]) -> tvm.IRModule:
    """Undoes `detach_weights`."""
    tensors = {name: tvm.runtime.tensor(np.asarray(a, order="C")) for name, a in arrays.items()}
    return relax.transform.BindParams(entry_of(mod), tensors)(mod)
