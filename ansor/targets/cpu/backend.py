"""`CPU`: the backend of processors that LLVM compiles for."""

from __future__ import annotations

from types import MappingProxyType

from ansor.lowering.for_cpu import for_cpu, for_plain_tvm
from ansor.lowering.pipeline import CPU_PIPELINE
from ansor.targets.backend import (
    Backend,
    Compiler,
    Execution,
    MachineReader,
    NetworkForm,
    TargetSyntax,
)
from ansor.targets.cpu import target
from ansor.targets.cpu.describe import describe
from ansor.targets.cpu.detect import detect, peak_flops, read_system
from ansor.targets.cpu.elsewhere import detect_elsewhere
from ansor.targets.cpu.known_cores import SHORTHANDS, known_core
from ansor.targets.cpu.low_precision import (
    activations,
    conversion_s,
    dot_instructions,
    why_not_short,
)
from ansor.targets.cpu.search import CPU_SEARCH

CPU = Backend(
    kind=target.KIND,
    title="CPUs",
    home=f"{__name__}:CPU",
    syntax=TargetSyntax(
        target.options,
        target.check,
        target.text,
        target.check_here,
        MappingProxyType({target.NATIVE: target.native_options, **SHORTHANDS}),
    ),
    machine=MachineReader(read_system, detect, peak_flops, describe, known_core, detect_elsewhere),
    search=CPU_SEARCH,
    compiler=Compiler(
        target.compiler_target, for_cpu, portable=for_plain_tvm, pipeline=CPU_PIPELINE
    ),
    execution=Execution(on_host=True),
    network=NetworkForm(
        joins_depthwise=True,
        filtering=True,
        why_not_short=why_not_short,
        activations=activations,
        dot_instructions=dot_instructions,
        conversion_s=conversion_s,
    ),
)
