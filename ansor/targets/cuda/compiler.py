"""Code for GPUs: the CUDA compiler that TVM uses (NVRTC or nvcc), and default schedules."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import tvm
from tvm.s_tir.dlight import ApplyDefaultSchedule
from tvm.s_tir.dlight.gpu import Fallback
from tvm.target import Target

from ansor.errors import MeasureError

_REMEDY = "install the CUDA toolkit, or pip install nvidia-cuda-nvcc"


def compiler_variables() -> dict[str, str]:
    """The environment in which TVM finds a CUDA compiler: NVRTC, which is faster, if its Python
    bindings are installed, else nvcc; unchanged without both."""
    if "TVM_CUDA_COMPILE_MODE" in os.environ or _has_nvrtc():
        return {}
    try:
        folder = str(Path(find_nvcc()).parent)
    except MeasureError:
        return {}
    path = os.pathsep.join([folder, os.environ.get("PATH", "")])
    return {"TVM_CUDA_COMPILE_MODE": "nvcc", "PATH": path}


def _has_nvrtc() -> bool:
    try:
        return find_spec("cuda.bindings.nvrtc") is not None
    except ModuleNotFoundError:
        return False


@cache
def find_nvcc() -> str:
    """Path of the compiler: on the path, or of the Python package.

    Raises:
        MeasureError: there is none.
    """
    found = shutil.which("nvcc")
    if found is not None:
        return found
    package = find_spec("nvidia")
    roots = list(package.submodule_search_locations or ()) if package is not None else []
    for path in (p for root in roots for p in sorted(Path(root).glob("cu*/bin/nvcc"))):
        return str(path)
    raise MeasureError("no CUDA compiler (nvcc) found", _REMEDY)


def plain_target(target: Target) -> Target:
    """The unchanged target, because it has no options for LLVM."""
    return target


def with_threads(mod: tvm.IRModule, target: Target) -> tvm.IRModule:
    """The module with TVM's default schedule, one thread per element, for functions without a
    schedule."""
    with target:
        return ApplyDefaultSchedule(Fallback())(mod)
