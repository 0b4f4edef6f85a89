"""`Machine`: what all kinds of targets know of the hardware that programs are made for."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Machine(Protocol):
    """Parameters of the hardware. Each kind of target has its class, such as `Hardware` for CPUs.

    Attributes:
        name: the product, for reports.
        peak_flops: floating-point operations per second in float32.
    """

    @property
    def name(self) -> str: ...

    @property
    def peak_flops(self) -> float: ...


M = TypeVar("M", bound=Machine)
