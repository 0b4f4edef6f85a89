"""Comparisons with the original model and with peers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckConfig:
    """Comparison with the original model (`ansor.run.check`) or with NumPy (`ansor.workloads`)."""

    least_integer: int = -9  # smallest integer of ordinary inputs; 0 for unsigned dtypes
    integer_limit: int = 10  # one past the largest; so few values make equal elements likely
    largest_int32: int = 1 << 15  # largest int32 of an operator's input: sums do not overflow
    large: float = 1e4  # size of large floats: `exp` overflows; squares stay finite in float32
    large_in_half: float = 1e2  # the same in 16 bits
    special_share: float = 0.05  # share of an input's elements with special values
    step: float = 1e-6  # relative change of inputs that shows how the original amplifies rounding
    # Relative changes of inputs for a network whose operators are right one by one. Like another
    # order of summation, they make a quantised network round some elements to another step. The
    # larger effect is the limit.
    flipping_steps: tuple[float, ...] = (1e-5, 1e-4)
    # Normalised mean squared error of a network in bfloat16 against float32: a cosine of 0.99995.
    max_squared_error: float = 1e-4
    max_amplified: float = 10.0  # allowed difference: this times the change that `step` causes


CHECK = CheckConfig()


@dataclass(frozen=True)
class CompareConfig:
    """Comparison of a network with peers (`ansor.compare`)."""

    turns: int = 10  # of each system in a round, which outlasts changes of the machine's speed
    slow_turns: int = 1  # the same for a system whose single run exceeds the time of a turn
    least_runs: int = 2  # of a system in a turn
    answer_timeout_s: float = 600.0  # of a system; Inductor compiles for minutes on a busy machine
    calibration_samples: int = 8  # random inputs, from which ranges for int8 are taken
    leave_s: float = 10.0  # for a process to end by itself after its last request


COMPARE = CompareConfig()
