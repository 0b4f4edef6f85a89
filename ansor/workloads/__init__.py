"""Compute definitions by name, with NumPy references: for trying out, testing, benchmarks.

In: a name and sizes (`registry.build("conv2d", height=56, width=56)`), or the name of a member of
the published suite (`suite.suite_workload("C2D.2")`). Out: a `Workload`, the TE tensors of the
definition and a function that computes the same with NumPy. One file per family of operators. Read
`workload.py` first, then `registry.py` and `suite.py`.
"""

from ansor.workloads.registry import build, names
from ansor.workloads.suite import suite, suite_workload
from ansor.workloads.workload import Workload

__all__ = ["Workload", "build", "names", "suite", "suite_workload"]
