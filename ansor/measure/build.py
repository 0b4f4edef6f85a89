"""How a function is compiled: the same for a candidate and for the final network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tvm
from tvm import tirx

from ansor.hardware.target import is_cpu
from ansor.measure.intrinsics import vector_math

ENTRY = "main"  # name of a candidate's function in its module

# Arguments are checked by whoever calls; the generated checks cost 10 to 20 ms of the compiler's
# time per function (of 30 to 130) and nothing is gained at run time.
PASS_CONFIG = {"tirx.disable_assert": True}


# On GPUs memory is shared out by scope, registers by the CUDA compiler. TVM's pass would also let
# arrays of different dtypes share memory, which its tensor instructions then refuse.
GPU_CONFIG = {**PASS_CONFIG, "tirx.disable_storage_rewrite": True}


@contextmanager
def pass_context(target: tvm.target.Target, exact: bool = False) -> Iterator[None]:
    """The settings under which everything is compiled, the final network too.

    Args:
        target: what it is compiled for.
        exact: keep the library's transcendental functions, for a reference.
    """
    config = PASS_CONFIG if is_cpu(target) else GPU_CONFIG
    with ExitStack() as stack:
        stack.enter_context(tvm.transform.PassContext(opt_level=3, config=config))
        if not exact:
            stack.enter_context(vector_math())
        yield


def build(func: tirx.PrimFunc, target: str, exact: bool = False) -> Any:
    """Compiles one scheduled function in memory; machine code exists when this returns.

    Args:
        target: text of a TVM target (a kind, or JSON).
        exact: as for `pass_context`.

    Returns:
        a `tvm.runtime.Module` with one function, `ENTRY`.
    """
    module = tvm.IRModule({ENTRY: func.with_attr("global_symbol", ENTRY)})
    resolved = tvm.target.Target(target)
    with pass_context(resolved, exact):
        compiled = tvm.compile(module, resolved).mod
    compiled.get_function(ENTRY)  # LLVM generates code at the first look-up, half of all the work
    return compiled
