"""Targets: checks of users' input, and a canonical text for keys."""

from __future__ import annotations

from tvm.target import Target as Target  # for annotations

from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.backend import Options
from ansor.targets.cpu.target import NATIVE as NATIVE
from ansor.targets.registry import backend_of, backends
from ansor.targets.text import split

_EXAMPLES = 'say "native", "llvm -mcpu=NAME", "cuda" or "cuda -arch=sm_NN"'


def resolve_target(target: str | Target) -> Target:
    """Returns the TVM target that `target` names.

    Args:
        target: "native" (this machine), "llvm -mcpu=...", "cuda" (this machine's first GPU),
            "cuda -arch=sm_NN", TVM's JSON text, or a TVM target. Arm's cores and processors have
            names such as "cortex-a76" and "graviton3". With "-tf32" ("tf32" among the target's
            keys) products in float32 may be rounded for tensor cores.

    Raises:
        ArgumentError: unknown kind, option, processor or architecture; no GPU here; tf32 of an
            architecture that has none.
        UnsupportedError: a target without a backend.
    """
    made = target if isinstance(target, Target) else _parse(target)
    backend_of(made).syntax.check(made, target)
    return made


def target_text(target: Target, threads: int) -> str:
    """Canonical JSON text, the same in every process; `tvm.target.Target` reads it.

    It has all that affects the speed of a program, such as the processor, its features and the
    number of threads.
    """
    return backend_of(target).syntax.text(target, threads)


def check_runs_here(target: Target) -> None:
    """Whether programs for a target can be run on this machine.

    Raises:
        UnsupportedError: they cannot; the message names the missing feature.
    """
    backend_of(target).syntax.check_here(target)


def runs_here(target: Target) -> bool:
    """Whether programs for a target can be run on this machine."""
    try:
        check_runs_here(target)
    except UnsupportedError:
        return False
    return True


def _parse(text: str) -> Target:
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError("target", text, _EXAMPLES)
    try:
        return Target(_options(text.strip()))
    except ArgumentError:
        raise
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        raise ArgumentError("target", text, f"{reason}; {_EXAMPLES}") from error


def _options(text: str) -> str | Options:
    """The argument of `tvm.target.Target`, which does not read the form "kind -option=value"."""
    for backend in backends():
        if text in backend.syntax.shorthands:
            return backend.syntax.shorthands[text]()
    if text.startswith("{") or " -" not in text:
        return text
    kind, options, flags = split(text)
    return backend_of(kind).syntax.options({"kind": kind, **options}, flags)
