"""Products with constant weights and a constant bias."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.s_tir import SBlock

from ansor.dag.contraction import contraction
from ansor.dag.graph import ComputeDAG
from ansor.dag.stage import Access, OpCounts
from ansor.frontend.precision.stages import is_exact, products_of
from ansor.lowering.statements import collect

Array = npt.NDArray[np.float32]
_SUM = OpCounts(float_add=1)


@dataclass(frozen=True)
class BiasedProduct:
    """A product of data and weights plus a bias: parameters of a function by their positions.

    Attributes:
        data, weight, bias: the parameters.
        averaged: dimensions of the data that all columns share. A mean may be taken over them.
        weight_axes, data_axes, bias_axes: the axis of the product for each dimension. The averaged
            dimensions of the data are left out. None stands for a dimension of one element.
    """

    data: int
    weight: int
    bias: int
    averaged: tuple[int, ...]
    weight_axes: tuple[int, ...]
    data_axes: tuple[int, ...]
    bias_axes: tuple[int | None, ...]

    def mean_result(self, weight: Array, data: Array) -> Array:
        """The mean of the products of all data with some weights, in the shape of the bias.

        The edges of a convolution count like the rest of it.
        """
        mean = data.mean(axis=self.averaged, dtype=np.float64)
        kept = [axis for axis in self.bias_axes if axis is not None]
        result = np.einsum(
            weight.astype(np.float64), list(self.weight_axes), mean, list(self.data_axes), kept
        )
        places = [place for place, axis in enumerate(self.bias_axes) if axis is None]
        return np.expand_dims(result, places).astype(np.float32)


def biased_product(
    func: tirx.PrimFunc, dag: ComputeDAG, constants: Collection[int]
) -> BiasedProduct | None:
    """The only product of a function, if the weights and a bias right after it are constants.

    Args:
        func: the function.
        dag: its graph.
        constants: positions of the parameters that are constants.
    """
    names = list(products_of(dag))
    if len(names) != 1 or (product := contraction(dag, names[0])) is None or product.stack:
        return None
    data, weight = product.ordered(dag.stages[names[0]].reads)
    bias = _bias_after(func, dag, names[0])
    positions = dict(zip(dag.buffers, range(len(func.params)), strict=False))
    if bias is None or _source_of(dag, data) not in positions:
        return None
    given = positions[_source_of(dag, data)]
    fixed = positions.get(weight.buffer, -1), positions.get(bias[0], -1)
    if not set(fixed) <= set(constants):
        return None
    own_axes = tuple(axis for axis in _axes(weight) if axis is not None)
    is_whole = len(own_axes) == len(weight.indices)
    if not is_whole or set(own_axes) != {*product.columns, *product.depth}:
        return None
    shared = tuple(d for d, axis in enumerate(data.axes) if axis not in product.depth)
    data_axes = tuple(axis for axis in data.axes if axis is not None and axis in product.depth)
    if set(product.columns) != set(bias[1]) - {None}:
        return None
    return BiasedProduct(given, *fixed, shared, own_axes, data_axes, bias[1])


def _axes(access: Access) -> tuple[int | None, ...]:
    """The axis of each dimension, None where it is not an axis alone."""
    alone = [index is not None and not index.const for index in access.indices]
    return tuple(a if known else None for a, known in zip(access.axes, alone, strict=True))


def _source_of(dag: ComputeDAG, data: Access) -> str:
    """The parameter of the data, if they are one or a padded copy of one; else the data's
    buffer."""
    writers = [stage for stage in dag.stages.values() if stage.output == data.buffer]
    if not writers or not is_exact(writers[0]) or len(writers[0].reads) != 1:
        return data.buffer
    (read,) = writers[0].reads
    same_order = read.axes == writers[0].writes[0].axes and None not in read.axes
    return read.buffer if same_order else data.buffer


def _bias_after(
    func: tirx.PrimFunc, dag: ComputeDAG, name: str
) -> tuple[str, tuple[int | None, ...]] | None:
    """The buffer that is added to a product, and the product's axis for each of its dimensions."""
    readers = dag.consumers(name)
    if len(readers) != 1 or dag.is_output(name):
        return None
    stage = dag.stages[readers[0]]
    output = dag.stages[name].writes[0]
    sums = [r for r in stage.reads if r.buffer == output.buffer]
    others = [r for r in stage.reads if r.buffer != output.buffer]
    if stage.ops != _SUM or len(sums) != 1 or len(others) != 1 or not _adds(func, stage.name):
        return None
    axes = dict(zip(_axes(sums[0]), output.axes, strict=True))
    extents = dag.buffers[others[0].buffer].shape
    found = [
        None if n == 1 else axes.get(a) for a, n in zip(_axes(others[0]), extents, strict=True)
    ]
    if any(axis is None and n != 1 for axis, n in zip(found, extents, strict=True)):
        return None
    return others[0].buffer, tuple(found)


def _adds(func: tirx.PrimFunc, name: str) -> bool:
    """Whether a block is a sum and not a difference."""
    blocks = [block for block in collect(func.body, SBlock) if str(block.name_hint) == name]
    value = getattr(blocks[0].body, "value", None) if blocks else None
    return isinstance(value, tirx.Add)
