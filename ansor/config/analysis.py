"""Definitions, features of programs, and neighbours of choices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DagConfig:
    """Limits of the analysis of definitions (`ansor.dag`)."""

    max_table: int = 128  # entries of a table of constants; unrolling larger ones takes too long
    max_points: int = 1 << 16  # values of a padded index; more are not counted


DAG = DagConfig()


@dataclass(frozen=True)
class FeatureConfig:
    """Sizes of the features (`ansor.features`)."""

    access_slots: int = 5  # the write, then the first four reads (TVM's buffers_per_store)
    intensity_samples: int = 10  # points of the arithmetic-intensity curve (Ansor, appendix B)
    line_bytes: int = 64  # the unit of traffic in features, for any size of cache lines
    # Elements between rows of a table: rows at distances of powers of two compete for cache lines.
    row_gap: int = 16


FEATURES = FeatureConfig()


@dataclass(frozen=True)
class NeighbourConfig:
    """Comparison of tiles (`ansor.program.decision`)."""

    # Weights of a tile's factors in the distance of two tiles: the innermost factor fills vectors
    # and registers, the outermost one is the rest of the extent.
    outermost_weight: float = 1e-3
    innermost_weight: float = 4.0
    closest: int = 4  # neighbours of a tile among tiles with another product of factors


NEIGHBOURS = NeighbourConfig()
