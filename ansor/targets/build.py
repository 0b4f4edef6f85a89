"""Compiles functions, in the same way for a candidate and for the final network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tvm
from tvm import tirx
from tvm.target import Target

from ansor.lowering.after_scheduling import ASYNC_COPIES, TENSOR_CORES
from ansor.lowering.vector_math import vector_math
from ansor.targets.host.threads import running_threads
from ansor.targets.registry import backend_of

ENTRY = "main"  # name of a candidate's function in its module

# Callers check the arguments. The generated checks cost 10 to 20 ms of the compiler's time for each
# function (of 30 to 130 ms), and gain nothing at run time.
PASS_CONFIG = {"tirx.disable_assert": True}

# Further settings for functions with an attribute. A pass of TVM lets arrays of different dtypes
# share memory, which TVM's tensor instructions then refuse. Another pass assigns dynamic shared
# memory.
_NEEDED = {
    TENSOR_CORES: {"tirx.disable_storage_rewrite": True},
    ASYNC_COPIES: {"tirx.use_async_copy": True},
}


@contextmanager
def pass_context(funcs: Iterable[tirx.PrimFunc] = (), exact: bool = False) -> Iterator[None]:
    """The settings for all compilation, also of the final network.

    Args:
        funcs: the scheduled functions.
        exact: with TVM's own passes alone and the library's transcendental functions, for a
            reference or for schedules by TVM.
    """
    config, given = dict(PASS_CONFIG), [func.attrs or {} for func in funcs]
    for attribute, needed in _NEEDED.items():
        if any(attribute in attributes for attributes in given):
            config |= needed
    with ExitStack() as stack:
        stack.enter_context(tvm.transform.PassContext(opt_level=3, config=config))
        if not exact:
            stack.enter_context(vector_math())
        yield


def compile_function(
    func: tirx.PrimFunc, target: str, exact: bool = False, llvm_target: Target | None = None
) -> Any:
    """Compiles one scheduled function in memory; machine code exists when this returns.

    Args:
        target: text of a TVM target (a kind, or JSON).
        exact: as for `pass_context`.
        llvm_target: the target for the code generator; by default the one of the backend.

    Returns:
        a `tvm.runtime.Module` with one function, `ENTRY`.
    """
    compiled = lowered_function(func, target, exact, llvm_target)
    compiled.get_function(ENTRY)  # LLVM generates code at the first look-up: half of the time
    return compiled


def lowered_function(
    func: tirx.PrimFunc, target: str, exact: bool = False, llvm_target: Target | None = None
) -> Any:
    """Like `compile_function`, but without LLVM's code generation: the target need not run here."""
    module = tvm.IRModule({ENTRY: func.with_attr("global_symbol", ENTRY)})
    resolved = Target(target)
    compiler = backend_of(resolved).compiler
    running_threads()  # code that is compiled before uses TVM's pool
    pipeline = "default" if exact else compiler.pipeline
    if not exact:
        module = compiler.prepare(module, resolved, None)
    with pass_context([func], exact):
        code_target = llvm_target or compiler.target(resolved)
        return tvm.compile(module, code_target, tir_pipeline=pipeline).mod
