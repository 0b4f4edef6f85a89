"""Imports of models and rewrites of networks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ImportConfig:
    """Limits of the importers (`ansor.frontend.importers`)."""

    max_steps: int = 256  # of a loop, which is unrolled
    max_dft_points: int = 2048  # four elements for each pair of points are 64 MiB in float32
    max_known: int = 1024  # elements of a known ONNX tensor: shapes, axes; a larger one is a weight
    max_constant: int = 1 << 20  # elements of a PyTorch tensor that is kept as a constant
    max_joined: int = 32  # tensors that one function puts in a row: each is one more branch in it
    max_position: float = 1e6  # elements; positions of samples are cut off there to fit an index
    upgraded_opset: int = 13  # what ONNX models of older operator sets are converted to


IMPORTS = ImportConfig()


@dataclass(frozen=True)
class GraphConfig:
    """Rewrites of networks (`ansor.frontend.passes`, `ansor.workloads.minimal_filtering`)."""

    # Bytes between two convolutions below which they stay apart: as much stays in the caches of two
    # cores, and a function of one convolution is searched in less time.
    min_pair_bytes: int = 1 << 20
    max_tile_waste: float = 0.35  # of the output's points, where it is no whole number of tiles
    # Steps of integer sums between a float bias and a whole number of steps, beside rounding.
    max_bias_error: float = 1e-3


GRAPH = GraphConfig()


@dataclass(frozen=True)
class PrecisionConfig:
    """Networks in other precisions (`ansor.frontend.precision`, `ansor.run`)."""

    # Points of the largest transform whose products may multiply short floats: F(2x2) of 3x3
    # kernels. Larger ones amplify the error of rounding what is multiplied.
    max_short_transform: int = 4
    # Of an error budget, for plain loops: programs that add up in another order had up to 1.15
    # times their error (BERT-base in bfloat16, Zen 4).
    budget_share: float = 0.8
    cut_unit_s: float = 1e-15  # of latencies in a minimum cut, which is exact on integers
    # Networks in several precisions whose sums of latencies are within this share of the least are
    # timed as a whole. Chosen.
    rival_margin: float = 0.1
    turns: int = 7  # of each in that comparison; chosen
    turn_s: float = 0.2  # seconds of a turn, in which a fast network runs several times; chosen


PRECISION = PrecisionConfig()
