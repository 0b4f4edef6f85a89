"""The row of one operator and one system in the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansor.report.formatting import align

_HEADER = (
    "op",
    "dtype",
    "system",
    "latency µs",
    "GOP/s",
    "of peak",
    "to ansor",
    "tuning s",
    "trials",
    "error",
)


_MAY_BE_ABSENT = ("variant", "error", "instruction", "best_so_far")


@dataclass(frozen=True)
class Row:
    """One operator by one system; numbers are None where there are none.

    Attributes:
        latency_us: of one run; the median of all turns.
        to_own: latency over that of our tuned program, median of the ratios within a turn.
        gflops: billions of operations of the definition per second.
        peak_gflops: of the machine, measured right after each turn of our program: of
            multiply-adds in float32, or of `instruction`.
        of_peak: share of it, median over the turns.
        tuning_s: seconds from the call to the compiled operator.
        trials: programs measured.
        variant: "direct", or the kind of another algorithm that was faster; of ours only.
        max_rel_err: largest difference from NumPy's result over its largest value.
        error: why there is no latency.
        dtype: name of the precision.
        instruction: whose peak counts, where `dtype` is not float32; "" where there is none.
        best_so_far: pairs of seconds since the call and latency of the best program, in µs, after
            each round of our search.
    """

    op: str
    system: str
    latency_us: float | None = None
    to_own: float | None = None
    gflops: float | None = None
    peak_gflops: float | None = None
    of_peak: float | None = None
    tuning_s: float | None = None
    trials: int | None = None
    variant: str = ""
    max_rel_err: float | None = None
    error: str = ""
    dtype: str = "float32"
    instruction: str = ""
    best_so_far: tuple[tuple[float, float | None], ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON has it: texts and "best_so_far" only where there are any."""
        values = asdict(self)
        absent = {key for key in _MAY_BE_ABSENT if not values[key]}
        return {key: value for key, value in values.items() if key not in absent}


def table(rows: Sequence[Row]) -> str:
    """For people."""
    cells = [
        (
            row.op,
            row.dtype,
            row.system,
            _number(row.latency_us, ".1f"),
            _number(row.gflops, ".0f"),
            _number(row.of_peak, ".0%"),
            _number(row.to_own, ".2f"),
            _number(row.tuning_s, ".0f"),
            _number(row.trials, "d"),
            row.error or _number(row.max_rel_err, ".1e"),
        )
        for row in rows
    ]
    return align(_HEADER, cells, (0, 1, 2))


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
