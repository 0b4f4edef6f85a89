"""Reads files of a server and measures its machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import ir, tirx

from ansor.measure.child.remote.session import RemoteSession
from ansor.measure.remote_program import Library, Parameter
from ansor.targets.build import ENTRY
from ansor.targets.cpu.probe.benchmark import Probe, probe
from ansor.targets.cpu.probe.meter import REPEATS, Spec
from ansor.targets.library import deployable

_PATH_BYTES, _CONTENT_BYTES = 256, 1 << 16  # with a zero at the end
_READ = "ansor_read_file"
# Reads a file with the C library of the server; the content does not change on failure.
_READ_IR = f"""
@mode = private constant [2 x i8] c"r\\00"
declare ptr @fopen(ptr, ptr)
declare i64 @fread(ptr, i64, i64, ptr)
declare i32 @fclose(ptr)
define linkonce_odr void @{_READ}(ptr %path, ptr %content, i64 %size) nounwind {{
  %file = call ptr @fopen(ptr %path, ptr @mode)
  %failed = icmp eq ptr %file, null
  br i1 %failed, label %done, label %read
read:
  %count = call i64 @fread(ptr %content, i64 1, i64 %size, ptr %file)
  %status = call i32 @fclose(ptr %file)
  br label %done
done:
  ret void
}}
"""


def threads_there(session: RemoteSession) -> int:
    """Threads that programs run on."""
    return int(session.function("runtime.NumThreads")())


def files_there(
    session: RemoteSession, target: str, linker: str | None, paths: Sequence[str]
) -> dict[str, str]:
    """The text of files of a server; "" for one that cannot be read."""
    module = session.load(kernel_library(_reader(), target, linker))
    found = {}
    for path in paths:
        given = np.frombuffer(path.encode().ljust(_PATH_BYTES, b"\0"), np.uint8)
        content = tvm.runtime.tensor(np.zeros(_CONTENT_BYTES, np.uint8), session.device)
        module[ENTRY](tvm.runtime.tensor(given, session.device), content)
        text = content.numpy().tobytes().partition(b"\0")[0]
        found[path] = text.decode(errors="replace")
    return found


def _reader() -> tvm.IRModule:
    """A function of a path and of the content, `uint8` both."""
    path = tirx.decl_buffer((_PATH_BYTES,), "uint8", name="path")
    content = tirx.decl_buffer((_CONTENT_BYTES,), "uint8", name="content")
    zero = tirx.const(0, "int32")
    places = [tirx.address_of(tirx.BufferLoad(each, [zero])) for each in (path, content)]
    size = tirx.const(_CONTENT_BYTES - 1, "int64")
    call = tirx.Evaluate(tirx.call_extern("void", _READ, *places, size))
    body = tirx.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(_READ_IR), call)
    func = tirx.PrimFunc([path, content], body).with_attr("global_symbol", ENTRY)
    return tvm.IRModule({ENTRY: func})


def kernel_library(module: tvm.IRModule, target: str, linker: str | None) -> Library:
    """A function, built for a server without a schedule."""
    suffix, code = deployable(tvm.compile(module, tvm.target.Target(target)).mod, linker)
    params = tuple(
        Parameter(tuple(map(int, param.shape)), str(param.dtype)) for param in module[ENTRY].params
    )
    return Library(code, suffix, params)


def probe_there(session: RemoteSession, spec: Spec, linker: str | None) -> Probe:
    """Runs the micro-benchmark on a server."""
    return probe(spec, partial(_meter, session, linker))


def _meter(
    session: RemoteSession, linker: str | None, module: tvm.IRModule, target: str, number: int
) -> Callable[[], float]:
    """Returns seconds of the fastest run on a server; all arguments are arrays of zeros."""
    library = kernel_library(module, target, linker)
    loaded: Any = session.load(library)
    arrays = [
        tvm.runtime.tensor(np.zeros(param.shape, param.dtype), session.device)
        for param in library.params
    ]
    return lambda: min(session.seconds(loaded, arrays, number, REPEATS))
