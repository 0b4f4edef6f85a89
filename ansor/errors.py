"""Every error that the package raises on purpose, in one small tree.

A message names the argument, the value and the remedy; catch `AnsorError` to catch them all.
"""

from __future__ import annotations


class AnsorError(Exception):
    """Base of all errors raised on purpose by this package."""


class ArgumentError(AnsorError, ValueError):
    """An argument of a public call is wrong.

    Args:
        argument: name of the argument as the caller spells it.
        value: what was given.
        remedy: what would be right.
    """

    def __init__(self, argument: str, value: object, remedy: str) -> None:
        super().__init__(f"{argument}={value!r}: {remedy}")
        self.argument = argument
        self.value = value
        self.remedy = remedy


class UnsupportedError(AnsorError):
    """A model or compute definition uses what cannot be scheduled (named with its place)."""


class TemplateMismatchError(AnsorError):
    """A schedule that a user wrote is not for this definition; the schedule itself raises it."""


class LoweringError(AnsorError):
    """A program could not be replayed on a TensorIR schedule."""


class MeasureError(AnsorError):
    """The measurement worker cannot be started or does not answer."""


class DatabaseError(AnsorError):
    """A record database cannot be opened, is not ours, or holds something unexpected."""


class GraphWarning(UserWarning):
    """A graph of `torch.compile` runs in PyTorch, or is compiled again; the reason is named."""
