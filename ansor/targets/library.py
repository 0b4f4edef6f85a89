"""Machine code of compiled modules as files: object files, and shared libraries of them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ansor.config import WORKERS
from ansor.errors import LoweringError
from ansor.linking.link import link
from ansor.linking.object_file import LinkError


def written(module: Any, name: str, form: str) -> bytes:
    """The file that a module of TVM writes.

    Args:
        name: of the file.
        form: the format of TVM, such as "o".
    """
    with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
        path = Path(folder, name)
        module.write_to_file(str(path), form)
        return path.read_bytes()


def deployable(module: Any, linker: str | None = None) -> tuple[str, bytes]:
    """The functions of an LLVM module as a file for another process or machine.

    Args:
        module: a module of TVM of the kind "llvm".
        linker: command that links, such as "aarch64-linux-gnu-g++"; by default the linker of this
            package, which links for x86-64 and AArch64.

    Returns:
        "so" and a shared library; or "o" and an object file, where there is no linker.

    Raises:
        LoweringError: the linker fails.
    """
    code = written(module, "code.o", "o")
    if linker is not None:
        return "so", _linked_by(linker, code)
    try:
        return "so", link(code)
    except LinkError:  # an architecture that the linker of this package does not know
        return "o", code


def _linked_by(linker: str, code: bytes) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ansor-") as folder:
        source, library = Path(folder, "code.o"), Path(folder, "code.so")
        source.write_bytes(code)
        command = [linker, "-shared", "-fPIC", "-o", str(library), str(source)]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except OSError as error:
            raise LoweringError(f"the linker {linker!r} does not start: {error}") from error
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip()[: WORKERS.error_characters]
            raise LoweringError(f"{linker} failed: {said}") from error
        return library.read_bytes()
