"""Dtypes of products and convolutions: of their operands, their sums and their result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tvm import te

from ansor.errors import ArgumentError
from ansor.workloads.workload import Array, Reference, Workload, numpy_dtype


@dataclass(frozen=True)
class Precision:
    """The dtypes of a product, each as TVM names it.

    Attributes:
        name: that a caller passes as `dtype`.
        data: of the left operand, or of a convolution's data.
        weight: of the right operand.
        sums: of the factors before the multiplication, of the sums, and of what follows them.
        result: of the output. It is rounded once.
        exact: in which NumPy computes the reference. It must hold all integer sums.
    """

    name: str
    data: str
    weight: str
    sums: str
    result: str
    exact: str

    def multiply(self, left: Any, right: Any) -> Any:
        """The product of two elements, in the dtype of the sums."""
        return left.astype(self.sums) * right.astype(self.sums)

    def store(self, tensor: Any) -> Any:
        """The tensor in the dtype of the result, by a separate stage unless it has that dtype."""
        if self.result == self.sums:
            return tensor
        return te.compute(tensor.shape, lambda *i: tensor(*i).astype(self.result), name="stored")

    def workload(self, name: str, tensors: tuple[Any, ...], reference: Reference) -> Workload:
        """A workload of tensors in these dtypes.

        Args:
            name: of the workload.
            tensors: inputs first, the output in the dtype of the sums last.
            reference: computes the output from inputs in `exact`.
        """

        def rounded(*arrays: Array) -> Array:
            wide = [array.astype(self.exact, copy=False) for array in arrays]
            return reference(*wide).astype(numpy_dtype(self.result), copy=False)

        *inputs, out = tensors
        return Workload(name, (*inputs, self.store(out)), rounded)


FLOAT32 = Precision("float32", *["float32"] * 5)
PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        each.name: each
        for each in (
            FLOAT32,
            Precision("float16", "float16", "float16", "float32", "float32", "float32"),
            Precision("bfloat16", "bfloat16", "bfloat16", "float32", "bfloat16", "float32"),
            Precision("int8", "uint8", "int8", "int32", "int32", "float64"),
        )
    }
)


def precision(dtype: str) -> Precision:
    """The precision of that name.

    Raises:
        ArgumentError: there is none.
    """
    if dtype not in PRECISIONS:
        raise ArgumentError("dtype", dtype, f"give one of {', '.join(PRECISIONS)}")
    return PRECISIONS[dtype]
