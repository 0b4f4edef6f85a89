"""The names and units of the feature columns, in order. One row of features per stage.

Values are stored as `rough_log2(1 + |value|)`, which does not change 0 and 1. The points of the
intensity curve are logarithms before they are sampled.
"""

from __future__ import annotations

from ansor.config import FEATURES

_OPS = (
    "float_add",
    "float_mul",
    "float_div",
    "float_cmp",
    "float_special",
    "int_add",
    "int_mul",
    "int_div",
    "int_cmp",
    "select",
)
_STAGE = (
    ("iterations", "log2"),
    ("loops", "log2"),
    ("outer_product", "log2"),
    ("vector_lanes", "log2"),
    ("unrolled", "log2 statements"),
    ("auto_unroll", "log2 statements"),
    ("parallel", "log2 iterations"),
    ("inner_reduction", "log2 iterations"),
    ("spatial_inner", "log2 iterations"),
    ("attached", "0 or 1"),
    ("position", "log2 host loops"),
    ("branch", "0 or 1"),
    ("reduction", "0 or 1"),
    ("allocation", "log2 bytes"),
)
_ACCESS = (
    ("is_read", "0 or 1"),
    ("is_write", "0 or 1"),
    ("bytes", "log2 bytes"),
    ("unique_bytes", "log2 bytes"),
    ("lines", "log2 lines"),
    ("unique_lines", "log2 lines"),
    ("reuse_distance", "log2 iterations"),
    ("reuse_distance_bytes", "log2 bytes"),
    ("reuse_count", "log2"),
    ("bytes_per_reuse", "log2 bytes"),
    ("lines_per_reuse", "log2 lines"),
    ("stride", "log2 elements of the innermost loop that moves it"),
    ("vector_stride", "log2 elements along the vectorised loop"),
)

COLUMNS: tuple[tuple[str, str], ...] = (
    *((f"ops.{name}", "log2 operations") for name in _OPS),
    *((f"stage.{name}", unit) for name, unit in _STAGE),
    *(
        (f"access{slot}.{name}", unit)
        for slot in range(FEATURES.access_slots)
        for name, unit in _ACCESS
    ),
    *((f"intensity{i}", "log2 operations per byte") for i in range(FEATURES.intensity_samples)),
)
NUM_FEATURES = len(COLUMNS)
