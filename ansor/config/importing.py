"""Imports of models and rewrites of networks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportConfig:
    """Limits of the importers (`ansor.frontend.importers`)."""

    max_steps: int = 256  # of a loop in a model; loops are unrolled
    max_dft_points: int = 2048  # its matrix, four float32 for each pair of points, has 64 MiB
    max_known: int = 1024  # elements of a known ONNX tensor: shapes, axes; a larger one is a weight
    max_constant: int = 1 << 20  # elements of a PyTorch tensor that is kept as a constant
    max_joined: int = 32  # tensors that one function concatenates, with a branch for each
    max_position: float = 1e6  # elements; positions of samples are clipped to fit an index
    upgraded_opset: int = 13  # what ONNX models of older operator sets are converted to


IMPORTS = ImportConfig()


@dataclass(frozen=True)
class GraphConfig:
    """Rewrites of networks (`ansor.frontend.passes`, `ansor.workloads.minimal_filtering`)."""

    # Two convolutions with fewer bytes between them are not fused: the caches of two cores hold
    # these bytes, and the search for a single convolution takes less time.
    min_pair_bytes: int = 1 << 20
    max_tile_waste: float = 0.35  # extra points of incomplete tiles, as a share of the output's
    # Largest distance of a float bias from an integer, in steps of the integer sums.
    max_bias_error: float = 1e-3


GRAPH = GraphConfig()


@dataclass(frozen=True)
class PrecisionConfig:
    """Networks in other precisions (`ansor.frontend.precision`, `ansor.run`)."""

    # Points of the largest transform whose products may have operands of 16 bits: F(2x2) of 3x3
    # kernels. Larger transforms amplify the rounding errors of the operands.
    max_short_transform: int = 4
    # Share of an error budget for plain loops. Programs that add up in another order had up to
    # 1.15 times the error of plain loops (BERT-base in bfloat16, Zen 4).
    budget_share: float = 0.8
    cut_unit_s: float = 1e-15  # unit of latencies in a minimum cut, which is exact for integers
    # Of networks in several precisions, those are timed as a whole whose sum of latencies is
    # within this share of the least sum. Chosen.
    rival_margin: float = 0.1
    turns: int = 7  # of each network in that comparison; chosen
    turn_s: float = 0.2  # duration of a turn, in which a fast network runs several times; chosen


PRECISION = PrecisionConfig()
