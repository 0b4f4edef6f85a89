"""Every error that the package raises on purpose, in one small tree.

The message of a `UserError` has the problem, which names the argument or the place and the value,
and the remedy. Catch `AnsorError` to catch them all.
"""

from __future__ import annotations


class AnsorError(Exception):
    """Base of all errors raised on purpose by this package."""


class UserError(AnsorError):
    """An error that a user can cause and remove.

    Args:
        problem: what is wrong; names the argument, file, layer or function, and the value.
        remedy: what would be right, or what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class ArgumentError(UserError, ValueError):
    """An argument of a public call is wrong.

    Args:
        argument: name of the argument as the caller spells it.
        value: what was given.
        remedy: what would be right.
    """

    def __init__(self, argument: str, value: object, remedy: str) -> None:
        super().__init__(f"{argument}={value!r}", remedy)
        self.argument = argument
        self.value = value

    def __str__(self) -> str:
        return f"{self.problem}: {self.remedy}"

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.remedy)


class UnsupportedError(UserError):
    """A model or compute definition uses what cannot be scheduled (named with its place)."""


class OperatorError(UnsupportedError):
    """A converter refuses an operator. The importer names the operator and its layer.

    Args:
        problem: what is wrong with "it", the operator.
        remedy: what to do.
    """

    def __init__(
        self, problem: str, remedy: str = "replace the operator in the model, or its arguments"
    ) -> None:
        super().__init__(problem, remedy)


class TemplateMismatchError(UserError):
    """A schedule that a user wrote is not for this definition; the schedule itself raises it."""


class LoweringError(AnsorError):
    """A program could not be replayed on a TensorIR schedule."""


class MeasureError(UserError):
    """The measurement worker cannot be started or does not answer."""


class DatabaseError(UserError):
    """A record database cannot be opened, is not ours, or holds something unexpected."""


class GraphWarning(UserWarning):
    """A graph of `torch.compile` runs in PyTorch, or is compiled again; the reason is named."""
