"""A network's machine code as bytes: TVM's program for its virtual machine, and a shared library.

Loading needs neither a compiler nor a linker, and leaves no file on the disk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import relax

from ansor.linking.link import link
from ansor.linking.object_file import LinkError
from ansor.targets.library import written

_LLVM = "llvm"  # what TVM calls modules of functions for the host


@dataclass(frozen=True, eq=False)
class MachineCode:
    """The loadable code of a network.

    Attributes:
        executable: calls of the network's functions, for TVM's virtual machine.
        library: the functions, as a shared library of this system.
    """

    executable: bytes
    library: bytes


def machine_code(executable: relax.VMExecutable) -> MachineCode | None:
    """The code of TVM's executable; None if this package cannot link it. LLVM's loader then links
    it in each process."""
    imported = list(executable.mod.imports)
    if [module.kind for module in imported] != [_LLVM]:
        return None
    try:
        library = link(written(imported[0], "code.o", "o"))
    except LinkError:  # an architecture, or something in its code, that our linker does not know
        return None
    return MachineCode(written(executable.mod, "program.vm", "vm"), library)


def load_code(code: MachineCode) -> relax.VMExecutable:
    """The code, ready to run in this process."""
    read = tvm.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
    program = read(code.executable)
    with _on_disk(code.library) as path:
        program.import_module(tvm.get_global_func("ffi.Module.load_from_file.so")(path, "so"))
    return relax.VMExecutable(program)


@contextmanager
def _on_disk(library: bytes) -> Iterator[str]:
    """The name of a file in memory, new for each library, because the system loads each name once.

    A file on the disk might be on a file system that forbids execution.
    """
    descriptor = os.memfd_create("network")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(library)
        with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
            path = Path(folder, "network.so")
            path.symlink_to(f"/proc/self/fd/{descriptor}")
            yield str(path)
    finally:
        os.close(descriptor)
