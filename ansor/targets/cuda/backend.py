"""`CUDA`: the backend of NVIDIA GPUs."""

from __future__ import annotations

from types import MappingProxyType

from ansor.targets.backend import (
    Backend,
    Compiler,
    Execution,
    MachineReader,
    NetworkForm,
    TargetSyntax,
)
from ansor.targets.cuda import target
from ansor.targets.cuda.compiler import compiler_variables, plain_target, with_threads
from ansor.targets.cuda.detect import describe, gpu_lanes, read_gpu
from ansor.targets.cuda.search import CUDA_SEARCH

CUDA = Backend(
    kind=target.KIND,
    title="NVIDIA GPUs",
    home=f"{__name__}:CUDA",
    syntax=TargetSyntax(
        target.options,
        target.check,
        target.text,
        target.check_here,
        MappingProxyType({target.KIND: target.options_here}),
    ),
    machine=MachineReader(
        read=lambda made, _: read_gpu(made),
        detect=lambda made, _: read_gpu(made),
        peak_flops=lambda made, _: read_gpu(made).peak_flops,
        describe=describe,
    ),
    search=CUDA_SEARCH,
    compiler=Compiler(plain_target, default_schedule=with_threads, variables=compiler_variables),
    execution=Execution(on_host=False, lanes=gpu_lanes, rounded_dtypes=target.rounded_dtypes),
    network=NetworkForm(wide_sums=True),
)
