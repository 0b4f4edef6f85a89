"""Targets: what users may write, checked, and a canonical text for keys."""

from __future__ import annotations

import json
import shlex
from typing import Any

import tvm
from tvm.target import codegen

from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.cpu.features import architecture, needed_features, why_not_here
from ansor.targets.cuda.machine import gpu_of, has_tf32
from ansor.targets.host.threads import available_cores

Target = tvm.target.Target  # what `resolve_target` returns

NATIVE = "native"
CUDA = "cuda"
TF32 = "tf32"  # a key of a target: tensor cores may round operands in float32
_TF32_FLAGS = (f"-{TF32}", f"--{TF32}")
_CUDA_KEYS = ("cuda", "gpu")  # that TVM gives the kind
_EXAMPLES = 'say "native", "llvm -mcpu=NAME", "cuda" or "cuda -arch=sm_NN"'


def resolve_target(target: str | tvm.target.Target) -> tvm.target.Target:
    """Returns the TVM target that `target` names.

    Args:
        target: "native" (this machine), "llvm -mcpu=...", "cuda" (this machine's first GPU),
            "cuda -arch=sm_NN", TVM's JSON text, or a TVM target. With "-tf32" ("tf32" among the
            target's keys) products in float32 may be rounded for tensor cores.

    Raises:
        ArgumentError: unknown kind, option, processor or architecture; no GPU here; tf32 of an
            architecture that has none.
        UnsupportedError: a target that exists, but for which there are no rules.
    """
    made = target if isinstance(target, tvm.target.Target) else _parse(target)
    kind = str(made.kind.name)
    if kind == CUDA:
        _check_gpu(made, target)
        return made
    if kind != "llvm":
        raise UnsupportedError(f"target {kind!r}: CPUs (llvm) and NVIDIA GPUs (cuda) can be tuned")
    _check_processor(made, target)
    return made


def target_text(target: tvm.target.Target, threads: int) -> str:
    """Canonical JSON text, the same in every process; `tvm.target.Target` reads it.

    It holds what decides how fast a program is: processor, features, and as "num-cores" the number
    of threads; of a GPU the architecture and whether it rounds to tf32. The triple is left out
    where it is this system's own.
    """
    if str(target.kind.name) == CUDA:
        keys = {"keys": [*_CUDA_KEYS, TF32]} if rounds_to_tf32(target) else {}
        return _canonical({"kind": CUDA, "arch": str(target.attrs["arch"]), **keys})
    kept = {key: _plain(value) for key, value in target.attrs.items() if key in _KEPT and value}
    if kept.get("mtriple") == str(codegen.llvm_get_system_triple()):
        del kept["mtriple"]
    return _canonical({**kept, "kind": str(target.kind.name), "num-cores": threads})


def _canonical(document: dict[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


_KEPT = ("mcpu", "mattr", "mtriple")


def _plain(value: Any) -> Any:
    """`value` as JSON has it; features in alphabetical order."""
    return str(value) if isinstance(value, str) else sorted(str(item) for item in value)


def native_options() -> dict[str, Any]:
    """TVM's options for this machine."""
    processor = str(codegen.llvm_get_system_cpu())
    return {"kind": "llvm", "mcpu": processor, "num-cores": available_cores()}


def _parse(text: str) -> tvm.target.Target:
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError("target", text, _EXAMPLES)
    try:
        return tvm.target.Target(_options(text.strip()))
    except ArgumentError:
        raise
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        raise ArgumentError("target", text, f"{reason}; {_EXAMPLES}") from error


def _options(text: str) -> str | dict[str, Any]:
    """What `tvm.target.Target` takes: TVM dropped the form "kind -option=value", so it is read
    here."""
    if text == NATIVE:
        return native_options()
    if text == CUDA:
        return {"kind": CUDA, "arch": _arch_here()}
    if text.startswith("{") or " -" not in text:
        return text
    kind, *flags = shlex.split(text)
    rounds = {flag for flag in flags if kind == CUDA and flag in _TF32_FLAGS}
    options = {"kind": kind, **dict(_flag(flag) for flag in flags if flag not in rounds)}
    if rounds:
        options["keys"] = [*options.get("keys", _CUDA_KEYS), TF32]
        options["arch"] = options.get("arch") or _arch_here()
    return options


def _arch_here() -> str:
    """Architecture of this machine's first GPU.

    Raises:
        ArgumentError: there is none, or no driver.
    """
    device = tvm.runtime.cuda(0)
    if not device.exist:
        remedy = "no NVIDIA GPU with its driver is here; to compile for one, say cuda -arch=sm_NN"
        raise ArgumentError("target", CUDA, remedy)
    return f"sm_{str(device.compute_version).replace('.', '')}"


def _flag(flag: str) -> tuple[str, Any]:
    """One "-option=value" as a pair.

    Raises:
        ValueError: not of that form.
    """
    key, equals, value = flag.lstrip("-").partition("=")
    if not (flag.startswith("-") and key and equals and value):
        raise ValueError(f"{flag!r} is not of the form -option=value")
    if key in ("mattr", "keys"):
        return key, value.split(",")
    if key == "num-cores":
        return key, int(value)
    if key == "mcpu" and value == NATIVE:
        return key, str(codegen.llvm_get_system_cpu())
    return key, value


def _check_processor(target: tvm.target.Target, given: object) -> None:
    triple = str(target.attrs.get("mtriple", "")) or str(codegen.llvm_get_system_triple())
    processor = str(target.attrs.get("mcpu", ""))
    if processor and not codegen.llvm_is_valid_cpu(processor, triple):
        own = str(codegen.llvm_get_system_cpu())
        remedy = f"LLVM knows no processor {processor!r} for {triple}; this machine's is {own!r}"
        raise ArgumentError("target", str(given), remedy)


def rounds_to_tf32(target: tvm.target.Target) -> bool:
    """Whether products in float32 may be rounded to tf32, for tensor cores."""
    return str(target.kind.name) == CUDA and TF32 in map(str, target.keys)


def _check_gpu(target: tvm.target.Target, given: object) -> None:
    arch = str(target.attrs["arch"])
    gpu_of(arch)
    if rounds_to_tf32(target) and not has_tf32(arch):
        remedy = f"tensor cores of {arch} know no tf32, those from sm_80 on do: leave it out"
        raise ArgumentError("target", str(given), remedy)


def check_runs_here(target: tvm.target.Target) -> None:
    """Whether programs for a target can be run on this machine.

    Raises:
        UnsupportedError: they cannot; what is missing is named.
    """
    if is_cpu(target):
        reason = why_not_here(architecture(target), needed_features(target))
        if reason is not None:
            raise UnsupportedError(
                f"target {_short(target)}: {reason}; programs are tuned where they run"
            )
        return
    arch, device = str(target.attrs["arch"]), tvm.runtime.cuda(0)
    if not device.exist:
        raise UnsupportedError(f"target cuda, {arch}: no NVIDIA GPU with its driver is here")
    here = _arch_here()
    if here != arch.removesuffix("a"):
        raise UnsupportedError(f"target cuda, {arch}: the GPU of this machine is {here}")


def _short(target: tvm.target.Target) -> str:
    names = [f"-{key}={target.attrs[key]}" for key in ("mtriple", "mcpu") if target.attrs.get(key)]
    return " ".join([str(target.kind.name), *names])


# Level 3 makes our programs no faster (55 of eleven operators take 1.00 times as long on average,
# each 0.88 to 1.11), as they ask for what they want unrolled, and takes up to five times as long
# to compile unrolled transforms.
_OPT_LEVEL = 2
# Options of LLVM that bound what takes it quadratic time or worse. With both, 42 programs of 14
# operators take 1.01 times as long to run, and half the time to become machine code.
# - Memory accesses of one block that its two schedulers compare each with each (default 1000): a
#   tile of 400 stores took them 5 s, now 0.3.
# - Casts within casts that it looks through when it finds how indices evolve (default 8): the
#   transforms of a 3-D convolution took 0.9 to 2.7 s, now 0.1. Without any, a product of
#   matrices took 4.6 times as long.
_LLVM_OPTIONS = ("-dag-maps-huge-region:uint=200", "-scalar-evolution-max-cast-depth:uint=2")


def compiler_target(target: str | tvm.target.Target) -> tvm.target.Target:
    """What the compiler is told: the target, and how much a CPU's code is optimised."""
    made = tvm.target.Target(target)
    if str(made.kind.name) != "llvm":
        return made
    given = made.export()
    options = [*_LLVM_OPTIONS, *given.get("cl-opt", ())]  # the target's own come last and count
    return tvm.target.Target({**given, "opt-level": _OPT_LEVEL, "cl-opt": options})


def host_of(text: str) -> str:
    """Text of the target that functions are run for on the host, given that of a task."""
    return text if is_cpu(tvm.target.Target(text)) else "llvm"


def is_cpu(target: tvm.target.Target) -> bool:
    """Whether the target's code runs on the host."""
    return str(target.kind.name) in ("llvm", "c")
