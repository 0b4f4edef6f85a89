"""The derivation rule for tensor cores: products of matrices in half precision, or in float32 where
it may be rounded to tf32, plain or not."""

from __future__ import annotations

import numpy as np

from ansor.config import GpuSketchConfig
from ansor.dag import operands, predicates
from ansor.dag.contraction import contraction, product_dtypes, waste
from ansor.dag.graph import ComputeDAG
from ansor.dag.index import Remainder
from ansor.dag.stage import Stage
from ansor.program.decision import Decision, category, factorisations
from ansor.program.roles import FRAGMENT, WARP_LEVEL
from ansor.program.steps import (
    BindWarps,
    CooperativeStore,
    LoadFragment,
    Store,
    StoreFragment,
    Tensorize,
    TensorTile,
)
from ansor.sketch.rule import Derivation, RuleContext
from ansor.sketch.state import State
from ansor.targets.cuda.machine import Gpu
from ansor.targets.cuda.rules.stages import cached, fetch, free_consumer, pipelined, producer_of


def tile_for_tensor_cores(state: State, context: RuleContext[Gpu]) -> Derivation:
    """Products of matrices: a warp's tiles are multiplied by tensor cores, if they take the dtype.

    Deviation: the paper has no tensor cores. A convolution becomes a product of matrices, padded if
    necessary. Its operands are assembled while they are fetched. Operands go through shared memory
    to the registers of a warp. Results go through shared memory to the consumer, which all threads
    of the block compute.
    """
    name, config = state.current, context.config.gpu
    found = contraction(state.dag, name)
    if found is None or not context.machine.multiplies(dtype := _operand_dtype(state.dag, name)):
        return Derivation()
    most = config.max_tf32_padding if dtype == "float32" else config.max_padding
    if waste(state.dag.stages[name], found, FRAGMENT) > most:
        return Derivation()
    state = state if free_consumer(state, name) else cached(state)
    consumer = free_consumer(state, name)
    assert consumer is not None
    if operands.matrix_product(state.dag, name, FRAGMENT) is None:
        state = state.as_product(consumer, found, FRAGMENT)
    product = operands.matrix_product(state.dag, name, FRAGMENT)
    assert product is not None
    store, width = f"{name}.store", category(f"{consumer}.store", consumer, config.vector_widths)
    decisions = _tensor_tiles(state.dag, name, product, context)
    state = state.write_cached(store)
    axes = range(len(state.dag.stages[name].axes))
    state = state.add(
        Store(name, "wmma.accumulator"),
        Store(store, "shared.dyn"),
        TensorTile(
            name, config.tensor_structure, tuple(decisions[a].name for a in axes), product.axes
        ),
        BindWarps(name),
        StoreFragment(name, store, WARP_LEVEL + 1),
        CooperativeStore(name, consumer, WARP_LEVEL, width.name),
        decisions=(*(decisions[a] for a in axes), width),
    )
    state, loads = _loaded(state, product, context)
    last = Tensorize(name, loads, store, product.transposed, product.swapped)
    return Derivation((pipelined(state.add(last), context).advance(),))


def _loaded(
    state: State, product: operands.MatrixProduct, context: RuleContext[Gpu]
) -> tuple[State, tuple[str, str]]:
    """`state` with the operands of its current stage fetched to shared memory, and from there to
    the registers of a warp. Also returns the stages that load the registers."""
    name, config = state.current, context.config.gpu
    loads, across = [], (product.transposed[0], not product.transposed[1])
    for buffer, operand, turned in zip(product.operands, "ab", across, strict=True):
        shared = producer_of(state, buffer)
        if shared is None:
            shared = f"{name}.{buffer}.shared"
            state = state.read_copied(buffer, shared)
        load = f"{name}.{operand}.fragment"
        wide = state.dag.buffers[buffer].dtype == "float32"
        pads = config.tf32_pads if wide and turned else config.pads
        state = fetch(state, shared, _fetch_widths(state.dag, shared, config), pads)
        state = state.read_copied(state.dag.stages[shared].output, load)
        state = state.add(LoadFragment(load, name, operand))
        loads.append(load)
    return state, (loads[0], loads[1])


def left_to_plain_cores(dag: ComputeDAG, gpu: Gpu) -> list[str]:
    """Remarks on products that the GPU's tensor cores do not multiply, once for each dtype.

    Products in float32 are mentioned only if tensor cores may round their operands.
    """
    found: dict[str, None] = {}
    for name in dag.order:
        dtypes = product_dtypes(dag, name)
        if dtypes is None or not predicates.has_data_reuse(dag, name):
            continue
        if dtypes[0] == "float32" and not gpu.tf32:
            continue
        if contraction(dag, name) is None or not gpu.multiplies(dtypes[0]):
            operand, total = dtypes
            text = f"products of {operand} added up in {total} run on plain CUDA cores: "
            found[text + f"tensor cores of {gpu.arch} are not used for them"] = None
    return list(found)


def _operand_dtype(dag: ComputeDAG, name: str) -> str:
    return dag.buffers[dag.stages[name].reads[0].buffer].dtype


def _tensor_tiles(
    dag: ComputeDAG, name: str, product: operands.MatrixProduct, context: RuleContext[Gpu]
) -> dict[int, Decision]:
    """Factors of every axis; the last factor is the tensor unit's."""
    config, stage, found = context.config.gpu, dag.stages[name], {}
    *sides, depth = product.axes
    for number, axis in enumerate(stage.axes):
        tile = FRAGMENT
        if number == depth:
            table = factorisations(axis.size // tile, 2)
        elif number in sides:
            table = factorisations(axis.size // tile, 3)
            table = table[
                (table[:, 1] <= config.max_warps) & (table[:, 2] <= config.max_warp_tiles)
            ]
        else:  # one matrix of a stack for each block
            table, tile = np.array([[axis.size, 1, 1]], dtype=np.int32), 0
        if tile:
            last = np.full((len(table), 1), tile, dtype=np.int32)
            table = np.concatenate([table, last], axis=1)
        found[number] = Decision(f"{name}.{axis.name}", name, table)
    return found


def _fetch_widths(dag: ComputeDAG, name: str, config: GpuSketchConfig) -> tuple[int, ...]:
    """Elements of a matrix that a thread may fetch at a time, up to 16 bytes.

    Eight elements in half precision must be one aligned load of a plain copy, because TVM does not
    assemble a vector of eight elements from different addresses.
    """
    if dag.buffers[dag.stages[name].output].item_bytes > 2:
        return config.vector_widths
    whole = _copies_runs(dag, dag.stages[name], config.tensor_widths[-1])
    return config.tensor_widths if whole else config.tensor_widths[:-1]


def _copies_runs(dag: ComputeDAG, stage: Stage, length: int) -> bool:
    """Whether a stage copies memory in aligned runs of a length."""
    if len(stage.reads) != 1 or stage.ops.flops:
        return False
    read, written = stage.reads[0], dag.buffers[stage.output]
    source, last = dag.buffers[read.buffer], read.indices[-1] if read.indices else None
    if last is None or len(last.terms) != 1 or source.dtype != written.dtype:
        return False
    ((atom, factor),), row = last.terms, source.shape[-1]
    if factor != 1 or last.const % length or not isinstance(row, int) or row % length:
        return False
    if isinstance(atom, Remainder):
        return atom.divisor % FRAGMENT == 0 and atom.index.single_axis == stage.spatial[-1]
    return atom == stage.spatial[-1]
