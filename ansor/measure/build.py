"""How a function is compiled: the same for a candidate and for the final network."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx

ENTRY = "main"  # name of a candidate's function in its module

# Arguments are checked by whoever calls; the generated checks cost 10 to 20 ms of the compiler's
# time per function (of 30 to 130) and nothing is gained at run time.
PASS_CONFIG = {"tirx.disable_assert": True}


def pass_context() -> Any:
    """The `PassContext` under which everything is compiled, the final network too."""
    return tvm.transform.PassContext(opt_level=3, config=PASS_CONFIG)


def build(func: tirx.PrimFunc, target: str) -> Any:
    """Compiles one scheduled function in memory; machine code exists when this returns.

    Args:
        target: text of a TVM target (a kind, or JSON).

    Returns:
        a `tvm.runtime.Module` with one function, `ENTRY`.
    """
    module = tvm.IRModule({ENTRY: func.with_attr("global_symbol", ENTRY)})
    with pass_context():
        compiled = tvm.compile(module, tvm.target.Target(target)).mod
    compiled.get_function(ENTRY)  # LLVM generates code at the first look-up, half of all the work
    return compiled
