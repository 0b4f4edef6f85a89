"""PyTorch's own operator samples: each imported, compiled and compared with PyTorch.

`python -m tests.suites.torch_operators [NAME …]` prints a line per operator and a table.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from ansor.errors import AnsorError
from ansor.frontend.deploy.runtime import compile_model
from ansor.frontend.importers.from_torch.capture import array_of
from ansor.frontend.importers.importer import import_model
from ansor.frontend.optimization import optimize
from ansor.targets.target import resolve_target
from tests.suites.in_children import print_outcomes
from tests.suites.outcome import Outcome

SAMPLES = 4  # of an operator
DRAWN = 40  # of which the samples are taken, evenly
LIMIT_S = 120.0  # of one operator
# Their results have a shape and a dtype, but no values.
UNDEFINED = frozenset(
    ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-9, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class Call(torch.nn.Module):
    """A module that calls a function; the tensors among its arguments are inputs.

    Args:
        leaves: the arguments, flattened by `structure`.
    """

    def __init__(self, function: Any, leaves: Sequence[Any], structure: Any) -> None:
        super().__init__()
        self.function, self.structure = function, structure
        self.places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.leaves = [None if k in self.places else leaf for k, leaf in enumerate(leaves)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The function's result."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.function(*args, **kwargs)


@cache
def operators() -> dict[str, Any]:
    """PyTorch's descriptions of its operators, by name."""
    return {name_of(op): op for op in op_db}


def name_of(op: Any) -> str:
    """The operator's name with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def cases() -> list[str]:
    """Names of all operators."""
    return list(operators())


def samples(op: Any) -> Iterator[tuple[Call, list[torch.Tensor]]]:
    """Some of an operator's samples as modules, with their inputs."""
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in op.dtypes), None)
    if dtype is None:
        return
    torch.manual_seed(0)
    drawn = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), DRAWN))
    step = max(1, -(-len(drawn) // SAMPLES))
    for sample in drawn[::step]:
        arguments = ((sample.input, *sample.args), sample.kwargs)
        leaves, structure = pytree.tree_flatten(arguments)
        tensors = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        module = Call(op.op, leaves, structure)
        if _runs(module, tensors):
            yield module, tensors


def _runs(module: Call, tensors: list[torch.Tensor]) -> bool:
    """Whether PyTorch takes the copies: a sample may look at memory around its tensors."""
    try:
        _reference(module, tensors)
    except Exception:  # of whatever kind the operator raises
        return False
    return True


def run_case(name: str) -> Outcome:
    """The verdict on an operator: the worst of its samples."""
    worst = Outcome(name, "passed", "")
    count = 0
    for number, (module, tensors) in enumerate(samples(operators()[name])):
        count += 1
        found = _run_sample(name, module, tensors)
        if RANKS.index(found.verdict) > RANKS.index(worst.verdict):
            worst = Outcome(name, found.verdict, f"sample {number}: {found.detail}")
        if worst.verdict == "crashed":
            break
    return worst if count else Outcome(name, "refused", "no samples of real numbers")


RANKS = ("passed", "refused", "wrong", "crashed")


def _run_sample(name: str, module: Call, tensors: list[torch.Tensor]) -> Outcome:
    expected = [t for t in pytree.tree_leaves(_reference(module, tensors)) if torch.is_tensor(t)]
    try:
        imported = import_model(module, tuple(tensors))
        target = resolve_target("native")
        compiled = compile_model(optimize(imported.mod, target), target)
        result = compiled(*(array_of(tensor) for tensor in tensors))
    except AnsorError as error:
        return _refused(name, str(error))
    except Exception as error:  # the verdict on it is the purpose of the suite
        line = (str(error).strip().splitlines() or [""])[-1]
        return Outcome(name, "crashed", f"{type(error).__name__}: {line[:200]}")
    results = list(result) if isinstance(result, tuple) else [result]
    if name in UNDEFINED:
        results, expected = [_zeros(r) for r in results], [torch.zeros_like(t) for t in expected]
    difference = _difference(results, expected)
    return Outcome(name, "wrong" if difference else "passed", difference)


def _zeros(array: Any) -> Any:
    return np.zeros(array.shape, array.dtype)


def _reference(module: Call, tensors: list[torch.Tensor]) -> Any:
    with torch.no_grad():
        return module(*(tensor.clone() for tensor in tensors))


def _refused(name: str, message: str) -> Outcome:
    one_line = "\n" not in message.strip()
    return Outcome(name, "refused" if one_line else "crashed", message.splitlines()[0][:300])


def _difference(results: Sequence[Any], expected: Sequence[torch.Tensor]) -> str:
    """How the results differ from the expected ones; "" if they do not."""
    if len(results) != len(expected):
        return f"{len(results)} results instead of {len(expected)}"
    for place, (got, want) in enumerate(zip(results, expected, strict=True)):
        array = array_of(want)
        if (got.shape, got.dtype) != (array.shape, array.dtype):
            return f"result {place}: {got.shape} {got.dtype} for {array.shape} {array.dtype}"
        if not _close(got, array, TOLERANCE.get(want.dtype, 0.0)):
            return f"result {place}: {_first(got, array)}"
    return ""


def _close(got: Any, want: Any, tolerance: float) -> bool:
    wide = np.float64 if tolerance else got.dtype
    a, b = got.astype(wide), want.astype(wide)
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance / 2, equal_nan=bool(tolerance)))


def _first(got: Any, want: Any) -> str:
    with np.errstate(all="ignore"):
        differ = ~np.isclose(
            got.astype(np.float64), want.astype(np.float64), rtol=1e-5, equal_nan=True
        )
    where = tuple(int(k) for k in np.argwhere(differ)[0]) if differ.any() else ()
    return (
        f"{int(differ.sum())} of {got.size} differ, at {where} {got[where]!r} for {want[where]!r}"
    )


@cache
def in_core(name: str) -> bool:
    """Whether every sample is captured and made of core ATen operators that draw nothing."""
    return all(_is_core(*sample) for sample in samples(operators()[name]))


def _is_core(module: Call, tensors: list[torch.Tensor]) -> bool:
    try:
        program = torch.export.export(module, tuple(tensors)).run_decompositions()
    except Exception:  # PyTorch's own limits, of many kinds
        return False
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    overloads = [t for t in targets if isinstance(t, torch._ops.OpOverload)]
    return all(torch.Tag.core in target.tags for target in overloads)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_outcomes(run_case, sys.argv[1:] or cases(), LIMIT_S)
