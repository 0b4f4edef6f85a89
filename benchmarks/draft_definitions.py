"""The operators on whose programs the constants of the draft are fitted.

The table covers the kinds of operators, with shapes of networks and of the operator suite. A file
of measurements names its operators, so the table may grow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from tvm import te

from ansor.config import SketchConfig
from ansor.dag.from_tir.read import read_dag
from ansor.frontend.passes.plain_definition import plain_definition
from ansor.program.sketch import Sketch
from ansor.targets.cpu.machine import Hardware
from ansor.targets.cpu.search import CPU_SEARCH
from ansor.task import Task
from ansor.workloads import Workload, suite_workload
from ansor.workloads.convolution_nd import ConvolutionSizes, convolution
from ansor.workloads.opevo import convolution_nchw
from ansor.workloads.workload import Array
from benchmarks.operator_case import workload_of


@dataclass(frozen=True)
class Definition:
    """An operator.

    Attributes:
        make: builds the compute definition.
        constants: positions of the parameters that are weights. An operator with weights is timed
            as a part of a network: its weights are not in the caches.
    """

    make: Callable[[], Workload]
    constants: tuple[int, ...] = ()


def task_of(name: str, target: str) -> Task:
    """The task of a definition.

    Raises:
        KeyError: no such definition.
    """
    definition = DEFINITIONS[name]
    func = plain_definition(definition.make().func)
    dag = read_dag(func, definition.constants)
    return Task(name, func, dag, target, in_network=bool(definition.constants))


def sketches_of(task: Task, hardware: Hardware, config: SketchConfig) -> list[Sketch]:
    """All sketches of a task for a machine, complete."""
    return CPU_SEARCH.sketches(task.dag, hardware, config)


def _member(name: str) -> Definition:
    """A member of the operator suite."""
    return Definition(lambda: suite_workload(name))


def _named(op: str, *constants: int) -> Definition:
    """An operator by name and sizes, as on the command line of the benchmarks."""
    return Definition(lambda: workload_of(op), constants)


def _conv(name: str, sizes: ConvolutionSizes, *constants: int) -> Definition:
    return Definition(lambda: convolution(name, sizes), constants)


def _sum_relu() -> Workload:
    """The end of a residual block: the sum of two `[56, 56, 256]`, and ReLU."""
    shape = (1, 56, 56, 256)
    a, b = te.placeholder(shape, name="A"), te.placeholder(shape, name="B")
    out = te.compute(shape, lambda *i: te.max(a(*i) + b(*i), 0.0), name="out")

    def reference(a: Array, b: Array) -> Array:
        summed: Array = np.maximum(a + b, 0)
        return summed

    return Workload("sum_relu", (a, b, out), reference)


def _heads() -> Workload:
    """The heads of an attention, brought before the positions: a copy of `[128, 12, 64]`."""
    a = te.placeholder((1, 128, 12, 64), name="A")
    out = te.compute((1, 12, 128, 64), lambda n, h, i, d: a[n, i, h, d], name="out")
    return Workload("heads", (a, out), lambda a: a.transpose(0, 2, 1, 3))


def _transpose() -> Workload:
    """A transposed copy of `[784, 192]`: channels last to channels first."""
    a = te.placeholder((784, 192), name="A")
    out = te.compute((192, 784), lambda i, j: a[j, i], name="out")
    return Workload("transpose", (a, out), lambda a: a.T)


DEFINITIONS: Mapping[str, Definition] = MappingProxyType(
    {
        "C1D.0": _member("C1D.0"),
        "C1D.2": _member("C1D.2"),
        "C2D.0": _member("C2D.0"),  # stride 2
        "C2D.1": _member("C2D.1"),
        "C2D.2": _member("C2D.2"),
        "conv3d": _conv("conv3d", ConvolutionSizes(1, (4, 14, 14), 64, 64, 3, 1, 1)),
        "GRP.0": _member("GRP.0"),
        "DIL.2": _member("DIL.2"),
        "DEP.1": _member("DEP.1"),
        "DEP.2": _member("DEP.2"),
        "T2D.0": _member("T2D.0"),
        "T2D.2": _member("T2D.2"),
        "CAP.3": _member("CAP.3"),
        "CBR.2": _member("CBR.2"),
        "nchw": Definition(lambda: convolution_nchw("nchw", 1, 64, 28, 96, 3, 1, 1)),
        "separable": _named("separable_conv2d"),
        "GMM.1": _member("GMM.1"),
        "GMM.2": _member("GMM.2"),
        "attention": _named("batch_matmul:batch=12;rows=128;columns=64;depth=128"),
        "TBS.0": _member("TBS.0"),
        # Weights that are not in the caches.
        "classifier": _named("dense:rows=1;columns=1000;depth=2048", 1),
        "dense_few": _named("dense:rows=8;columns=768;depth=3072", 1),
        "projection": _named("matmul:rows=128;columns=768;depth=768", 1),
        "deep_conv": _conv("deep_conv", ConvolutionSizes(1, (7, 7), 512, 512, 3, 1, 1), 1),
        "winograd": _named("winograd_conv2d:height=28;width=28;channels=128;filters=128", 1),
        # Little arithmetic.
        "SFM.1": _member("SFM.1"),
        "NRM.1": _member("NRM.1"),
        "row_sum": _named("row_sum:rows=8;columns=65536"),
        "global_pool": _named("global_average_pool2d:channels=2048"),
        "max_pool": _named("max_pool2d:height=112;width=112;channels=64"),
        "sum_relu": Definition(_sum_relu),
        "heads": Definition(_heads),
        "transpose": Definition(_transpose),
    }
)
