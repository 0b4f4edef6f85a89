"""The code of the thread pool as an object file for any architecture that it knows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import tvm
from tvm import tirx
from tvm.target import Target, codegen

from ansor.errors import UnsupportedError
from ansor.targets.cpu.features import architecture
from ansor.targets.host.thread_pool_code import pool_ir


def pool_object(target: Target) -> bytes:
    """An object file with the functions of `ansor.targets.host.thread_pool_ir`.

    Raises:
        UnsupportedError: an architecture that the code does not know.
    """
    family = architecture(target)
    layout, triple = _headers(target)
    try:
        code = pool_ir(layout, family)
    except KeyError as error:
        raise UnsupportedError(
            f"target {target}: no threads for {family} processors",
            "export for a CPU of another family, or call the network from Python",
        ) from error
    with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
        source, compiled = Path(folder, "pool.ll"), Path(folder, "pool.o")
        source.write_text(f"{triple}\n{code}")
        module = tvm.get_global_func("ffi.Module.load_from_file.ll")(os.fspath(source), "ll")
        module.write_to_file(os.fspath(compiled), "o")
        return compiled.read_bytes()


def _headers(target: Target) -> tuple[str, str]:
    """LLVM's lines of the data layout and of the architecture's name."""
    triple = {"mtriple": target.attrs["mtriple"]} if target.attrs.get("mtriple") else {}
    nothing = tirx.PrimFunc([], tirx.Evaluate(tirx.const(0, "int32")))
    module = tvm.IRModule({"nothing": nothing.with_attr("global_symbol", "nothing")})
    built = codegen.build_module(module, Target({"kind": "llvm", **triple}))
    lines = str(built.inspect_source("ll")).splitlines()
    starts = ("target datalayout", "target triple")
    layout, name = (next(line for line in lines if line.startswith(start)) for start in starts)
    return layout, name
