"""Compute definitions by name, with NumPy references: for trying out, testing, benchmarks.

In: a name and sizes (`registry.build("conv2d", height=56, width=56)`). Out: a `Workload`, the TE
tensors of the definition and a function that computes the same with NumPy. One file per family of
operators. Read `workload.py` first, then `registry.py`.
"""

from ansor.workloads.registry import build, names
from ansor.workloads.workload import Workload

__all__ = ["Workload", "build", "names"]
