"""Small compute definitions that the tests share: every kind of stage, checked in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np
from tvm import te, tirx

from ansor.annotate.complete import complete
from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.dag.graph import ComputeDAG
from ansor.program.sketch import Sketch
from ansor.sketch.generate import generate
from ansor.sketch.rules import CPU_RULES
from ansor.targets.cpu.machine import DotUnit, Hardware
from ansor.workloads import Workload, build
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution
from ansor.workloads.opevo import convolution_nchw
from ansor.workloads.transposed import transposed_convolution

HARDWARE = Hardware(
    cores=2, dot_units=(DotUnit("vdpbf16ps", 1.0, 6.0), DotUnit("vpdpbusd", 1.0, 4.0))
)

SIZES: Mapping[str, tuple[str, dict[str, int]]] = MappingProxyType(
    {
        "matmul": ("matmul", {"rows": 32, "columns": 48, "depth": 24}),
        "matmul_relu": ("matmul", {"rows": 32, "columns": 40, "depth": 36, "relu": 1}),
        "dense": ("dense", {"rows": 24, "columns": 32, "depth": 12}),
        "dense_squares": ("dense", {"rows": 24, "columns": 32, "depth": 48}),
        "matmul_prime": ("matmul", {"rows": 37, "columns": 53, "depth": 12, "relu": 1}),
        "batch_matmul": ("batch_matmul", {"batch": 3, "rows": 8, "columns": 16, "depth": 12}),
        "conv1d": ("conv1d", {"length": 14, "channels": 8, "filters": 16}),
        "conv2d": ("conv2d", {"height": 8, "width": 8, "channels": 8, "filters": 16}),
        "conv2d_stride2": (
            "conv2d",
            {"height": 15, "width": 13, "channels": 6, "filters": 16, "stride": 2},
        ),
        "depthwise_conv2d": ("depthwise_conv2d", {"height": 14, "width": 14, "channels": 16}),
        "transposed_conv2d": ("transposed_conv2d", {"channels": 8, "filters": 8}),
        "separable_conv2d": (
            "separable_conv2d",
            {"height": 8, "width": 8, "channels": 16, "filters": 32},
        ),
        "winograd_conv2d": (
            "winograd_conv2d",
            {"height": 8, "width": 16, "channels": 8, "filters": 32},
        ),
        "winograd_joined": (
            "winograd_conv2d",
            {"height": 8, "width": 8, "channels": 16, "filters": 16, "tile": 2, "join": 1},
        ),
        "winograd_cut": (
            "winograd_conv2d",
            {"height": 7, "width": 7, "channels": 16, "filters": 16, "tile": 2, "join": 1},
        ),
        "softmax": ("softmax", {"rows": 16, "columns": 60}),
        "softmax_prime": ("softmax", {"rows": 6, "columns": 67}),
        "row_sum": ("row_sum", {"rows": 4, "columns": 4096}),
        "total_sum": ("total_sum", {"size": 4096}),
        "norm": ("norm", {"rows": 32, "columns": 32}),
        "max_pool2d": ("max_pool2d", {"height": 14, "width": 14, "channels": 16}),
        "global_average_pool2d": ("global_average_pool2d", {"channels": 64}),
    }
)
# Operators of the suite in low precision, whose products an instruction adds up in groups.
LOW_PRECISION: Mapping[str, tuple[str, str, dict[str, int]]] = MappingProxyType(
    {
        "bfloat16_matmul": ("bfloat16", "matmul", {"rows": 12, "columns": 40, "depth": 24}),
        "bfloat16_dense": ("bfloat16", "dense", {"rows": 8, "columns": 32, "depth": 16}),
        "bfloat16_conv2d": ("bfloat16", "conv2d", SIZES["conv2d"][1]),
        "int8_matmul": ("int8", "matmul", {"rows": 12, "columns": 52, "depth": 24, "relu": 1}),
        "int8_conv2d": ("int8", "conv2d", SIZES["conv2d"][1]),
        "int8_conv2d_few": ("int8", "conv2d", SIZES["conv2d_stride2"][1]),  # no groups of four
    }
)
# The machine above with instructions on tiles, and definitions whose products they compute.
TILE_HARDWARE = replace(
    HARDWARE,
    dot_units=(
        *HARDWARE.dot_units,
        DotUnit("tdpbf16ps", 1 / 16, 52.0),
        DotUnit("tdpbusd", 1 / 16, 52.0),
    ),
)
TILED: Mapping[str, tuple[str, str, dict[str, int]]] = MappingProxyType(
    {
        "tiled_matmul": ("bfloat16", "matmul", {"rows": 48, "columns": 96, "depth": 64}),
        # Tiles that do not divide rows and columns, and a short last dimension.
        "tiled_matmul_uneven": ("bfloat16", "matmul", {"rows": 49, "columns": 40, "depth": 24}),
        "tiled_dense": ("bfloat16", "dense", {"rows": 12, "columns": 48, "depth": 32}),
        "tiled_batch_matmul": (
            "bfloat16",
            "batch_matmul",
            {"batch": 2, "rows": 20, "columns": 32, "depth": 32},
        ),
        "tiled_conv2d": (
            "bfloat16",
            "conv2d",
            {"height": 6, "width": 9, "channels": 32, "filters": 32},
        ),
        "tiled_conv2d_few": (  # a row of the kernel is a row of a tile
            "bfloat16",
            "conv2d",
            {"height": 6, "width": 11, "channels": 8, "filters": 24, "stride": 2},
        ),
        "tiled_int8_matmul": (
            "int8",
            "matmul",
            {"rows": 33, "columns": 64, "depth": 96, "relu": 1},
        ),
        "tiled_int8_conv2d": (
            "int8",
            "conv2d",
            {"height": 7, "width": 9, "channels": 64, "filters": 16, "stride": 2},
        ),
    }
)
NAMES = (
    *SIZES,
    *LOW_PRECISION,
    *("phases", "phases_relu", "phases_few", "few_filters"),
    *("channels_first", "groups", "groups_of_three"),
)

FLOAT32 = tuple(name for name in NAMES if name not in LOW_PRECISION)


# A small shape of every family of the operator suite, in the order of its own sizes.
SMALL_SUITE: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "C1D": (14, 6, 8, 3, 2, 1),
        "C2D": (9, 8, 3, 8, 5, 2, 2),
        "C3D": (4, 7, 6, 3, 8, 3, 2, 1),
        "GMM": (8, 12, 16),
        "GRP": (7, 6, 8, 16, 3, 1, 1, 4),
        "DIL": (9, 10, 4, 8, 3, 2, 1, 2),
        "DEP": (8, 7, 8, 3, 2, 1),
        "T2D": (4, 3, 6, 8, 4, 2, 1),
        "CAP": (6, 5, 3, 4, 3, 2, 1, 4),
        "NRM": (12, 20),
        "SFM": (8, 30),
        "CBR": (8, 9, 4, 8, 3, 2, 1),
        "TBG": (8, 3, 6),
        "TBS": (8, 3, 6),
    }
)


@cache
def workload(name: str) -> Workload:
    """The small workload `name`."""
    if name == "channels_first":  # read with a stride along the last axis
        return convolution_nchw(name, 2, 3, 17, 16, 3, 2, 0)
    if name.startswith("groups"):  # of three, tiles would lie across two
        groups, filters = (3, 48) if name.endswith("three") else (4, 64)
        sizes = ConvolutionSizes(1, (9, 8), 4 * groups, filters, 3, 2, 1, groups=groups)
        return convolution(name, sizes)
    if name == "few_filters":  # fewer than half a vector
        return convolution(name, ConvolutionSizes(1, (6, 16), 4, 3, 3, 1, 1))
    if name == "phases_few":
        return transposed_convolution(name, 1, 3, 16, 6, 3, 4, 2, 1)
    if name.startswith("phases"):
        return _transposed(name, relu=name.endswith("relu"))
    if name in LOW_PRECISION or name in TILED:
        dtype, base, sizes = {**LOW_PRECISION, **TILED}[name]
        return build(base, dtype=dtype, **sizes)
    base, sizes = SIZES[name]
    return build(base, **sizes)


def _transposed(name: str, relu: bool) -> Workload:
    """A transposed convolution whose points take turns with the elements of its kernel."""
    plain = transposed_convolution(name, 1, 4, 3, 6, 16, 4, 2, 1)
    if not relu:
        return plain
    data, weight, conv = plain.tensors
    zero = tirx.const(0, "float32")
    out = te.compute(conv.shape, lambda *i: te.max(conv(*i), zero), name="relu")
    reference = plain.reference
    return replace(
        plain, tensors=(data, weight, out), reference=lambda *a: np.maximum(reference(*a), 0)
    )


@cache
def dag(name: str) -> ComputeDAG:
    """Its graph."""
    return read_dag(workload(name).func)


@cache
def sketches(name: str, config: SketchConfig = SketchConfig()) -> tuple[Sketch, ...]:  # noqa: B008
    """All its sketches."""
    states = generate(dag(name), HARDWARE, CPU_RULES, config)
    return tuple(complete(state, HARDWARE, config) for state in states)


@cache
def tile_sketches(name: str, constants: tuple[int, ...] = ()) -> tuple[Sketch, ...]:
    """All sketches of a definition of `TILED` for a machine with instructions on tiles."""
    config, dag = SketchConfig(), read_dag(workload(name).func, constants)
    states = generate(dag, TILE_HARDWARE, CPU_RULES, config)
    return tuple(complete(state, TILE_HARDWARE, config) for state in states)


@cache
def square_matmul(size: int) -> Sketch:
    """The first sketch of a product of two square matrices, with one nest of loops."""
    dag = read_dag(build("matmul", rows=size, columns=size, depth=size).func)
    config = SketchConfig()
    return complete(generate(dag, HARDWARE, CPU_RULES, config)[0], HARDWARE, config)
