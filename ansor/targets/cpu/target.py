"""CPU targets: their options, their text, and what LLVM receives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm.target import Target, codegen

from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.backend import Options
from ansor.targets.cpu.features import architecture, needed_features, unnamed_features, why_not_here
from ansor.targets.host.threads import available_cores
from ansor.targets.text import canonical, malformed

KIND = "llvm"
NATIVE = "native"
_KEPT = ("mcpu", "mattr", "mtriple")
# LLVM's optimisation level. Our programs say which loops to unroll, and level 3 makes them no
# faster: 55 programs of eleven operators take 1.00 times as long on average (0.88 to 1.11). It
# takes up to five times as long to compile unrolled transforms.
_OPT_LEVEL = 2
# Options that bound analyses of LLVM with quadratic time or worse. With both, 42 programs of 14
# operators take 1.01 times as long to run, and half the time to compile.
# - Memory accesses of a block that two schedulers compare with each other (default 1000). A tile
#   of 400 stores takes them 5 s by default, and 0.3 s with the option.
# - Depth of nested casts in the analysis of indices (default 8). The transforms of a 3-D
#   convolution take 0.9 to 2.7 s by default, and 0.1 s with the option. Without any casts, a
#   product of matrices runs 4.6 times as long.
_LLVM_OPTIONS = ("-dag-maps-huge-region:uint=200", "-scalar-evolution-max-cast-depth:uint=2")


def native_options() -> Options:
    """TVM's options for this machine."""
    return {"kind": KIND, **_processor_here(), "num-cores": available_cores()}


def _processor_here() -> Options:
    """LLVM's name of this processor, and the instruction sets that differ from the name's."""
    name = str(codegen.llvm_get_system_cpu())
    features = unnamed_features(name)
    return {"mcpu": name, **({"mattr": list(features)} if features else {})}


def options(given: Options, flags: Sequence[str]) -> Options:
    """TVM's options; "-mcpu=native" becomes this processor.

    Raises:
        ValueError: a flag without a value.
    """
    if flags:
        raise malformed(flags[0])
    if given.get("mcpu") != NATIVE:
        return given
    here = _processor_here()
    features = [*here.get("mattr", ()), *given.get("mattr", ())]
    return {**given, **here, **({"mattr": features} if features else {})}


def check(target: Target, given: object) -> None:
    """Raises an ArgumentError for a processor that LLVM does not know."""
    triple = str(target.attrs.get("mtriple", "")) or str(codegen.llvm_get_system_triple())
    processor = str(target.attrs.get("mcpu", ""))
    if processor and not codegen.llvm_is_valid_cpu(processor, triple):
        here = str(codegen.llvm_get_system_cpu())
        remedy = (
            f"LLVM knows no processor {processor!r} for {triple}; name another one, such as "
            f"{here!r} of this machine"
        )
        raise ArgumentError("target", str(given), remedy)


def text(target: Target, threads: int) -> str:
    """Processor, features, and the number of threads as "num-cores"; also the triple if it is not
    this system's."""
    kept = {key: _plain(value) for key, value in target.attrs.items() if key in _KEPT and value}
    if kept.get("mtriple") == str(codegen.llvm_get_system_triple()):
        del kept["mtriple"]
    return canonical({**kept, "kind": str(target.kind.name), "num-cores": threads})


def _plain(value: Any) -> Any:
    """`value` in its JSON form; features in alphabetical order."""
    return str(value) if isinstance(value, str) else sorted(str(item) for item in value)


def check_here(target: Target) -> None:
    """Raises an UnsupportedError for the code of another architecture, or of missing features."""
    reason = why_not_here(architecture(target), needed_features(target))
    if reason is not None:
        raise UnsupportedError(
            f"target {_short(target)}: {reason}",
            "tune where the programs run, or without measurements (trials=0) if "
            "the parameters of the core are known",
        )


def _short(target: Target) -> str:
    names = [f"-{key}={target.attrs[key]}" for key in ("mtriple", "mcpu") if target.attrs.get(key)]
    return " ".join([str(target.kind.name), *names])


def compiler_target(target: Target) -> Target:
    """The target with the level and the options of LLVM's optimisation."""
    given = target.export()
    options = [*_LLVM_OPTIONS, *given.get("cl-opt", ())]  # the target's own come last and prevail
    return tvm.target.Target({**given, "opt-level": _OPT_LEVEL, "cl-opt": options})
