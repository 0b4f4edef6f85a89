"""Comparisons with the original model and with peers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckConfig:
    """Comparison with the original model (`ansor.run.check`) or with NumPy (`ansor.workloads`)."""

    least_integer: int = -9  # of ordinary inputs; 0 of unsigned ones
    integer_limit: int = 10  # one past the largest: any tensor of some size has ties
    largest_int32: int = 1 << 15  # of an operator's input: sums with it do not overflow
    large: float = 1e4  # of floats: `exp` overflows, and squares stay finite in float32
    large_in_half: float = 1e2  # the same in 16 bits
    special_share: float = 0.05  # of the elements of an input
    step: float = 1e-6  # relative change of inputs that shows how the original amplifies rounding
    # The changes where each operator is right alone. Under them some elements of a quantised
    # network are rounded to another step, as under another order of summation. The larger effect is
    # the limit.
    flipping_steps: tuple[float, ...] = (1e-5, 1e-4)
    # Normalised mean squared error of a network in bfloat16 against float32: a cosine of 0.99995.
    max_squared_error: float = 1e-4
    max_amplified: float = 10.0  # times what the original amplifies, a network may differ


CHECK = CheckConfig()


@dataclass(frozen=True)
class CompareConfig:
    """Comparison of a network with peers (`ansor.compare`)."""

    turns: int = 10  # of each system in a round; they take longer than a machine keeps one speed
    slow_turns: int = 1  # the same of a system whose one run takes longer than a turn should
    least_runs: int = 2  # in a turn
    answer_timeout_s: float = 600.0  # Inductor compiles for minutes on a busy machine
    calibration_samples: int = 8  # random inputs, from which ranges for int8 are taken
    leave_s: float = 10.0  # for a process to end by itself when nothing more is asked


COMPARE = CompareConfig()
