"""`Machine`: the parameters of hardware that all kinds of targets have."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Machine(Protocol):
    """Parameters of the hardware. Each kind of target has its class, such as `Hardware` for CPUs.

    Attributes:
        name: the product, for reports.
        peak_flops: floating-point operations per second in float32.
        peak_bytes: bytes per second that all cores load and store; infinite if unknown.
        memory_bandwidth: bytes per second of the memory; infinite if unknown.
    """

    @property
    def name(self) -> str: ...

    @property
    def peak_flops(self) -> float: ...

    @property
    def peak_bytes(self) -> float: ...

    @property
    def memory_bandwidth(self) -> float: ...

    def product_flops(self, item_bytes: int) -> float:
        """Operations per second of sums of products, at most, by the bytes of an operand;
        infinite if unknown."""


M = TypeVar("M", bound=Machine)
