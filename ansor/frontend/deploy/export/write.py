"""Writes the folder of an exported network."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi.libinfo
from tvm.target import Target

from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend.calling import Calling
from ansor.frontend.deploy.built import DeployableNetwork
from ansor.frontend.deploy.detached_weights import Array
from ansor.frontend.deploy.export.description import description, named_outputs
from ansor.frontend.deploy.export.threads import pool_object
from ansor.frontend.deploy.machine_code import MachineCode
from ansor.frontend.signature import InputSpec, output_specs
from ansor.targets.cpu.features import architecture
from ansor.targets.host.memory import aligned
from ansor.targets.registry import backend_of

DESCRIPTION, WEIGHTS, LIBRARY, PROGRAM = "network.txt", "weights.bin", "libnetwork.so", "network.vm"
RUNTIME_LIBRARIES = ("libtvm_ffi.so", "libtvm_runtime.so")
_TEXTS = (
    *("ansor_network.h", "ansor_network.cc", "ansor_threads.h", "ansor_threads.cc"),
    *("main.cc", "CMakeLists.txt", "network.py"),
)
_HEADERS = ("tvm", "dlpack")  # folders of tvm_ffi's headers

Folder = str | os.PathLike[str]


def export_network(
    model: DeployableNetwork,
    state: Sequence[Array],
    calling: Calling | None,
    threads: int,
    folder: Folder,
    runtime: Folder | None = None,
) -> None:
    """Writes a network to a folder.

    Args:
        model: the network with machine code.
        state: initial values of the tensors that it keeps between calls.
        calling: how the original model is called; it has the names of the outputs.
        threads: that it was tuned for.
        folder: a new one, or an empty one.
        runtime: folder with TVM's runtime libraries for the target. By default they are those of
            this installation if the target has the architecture of this machine, or else left out.

    Raises:
        ArgumentError: the folder has files or cannot be written to, or `runtime` lacks a library.
        UnsupportedError: the network is not for a CPU, or its code cannot be linked here.
    """
    code = _code(model)
    libraries = _libraries(model.target, runtime)
    specs = _specs(model, state, calling)
    destination = _destination(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".ansor-", dir=destination.parent) as name:
            made = Path(name, "export")
            made.mkdir()
            (made / LIBRARY).write_bytes(code.library)
            (made / PROGRAM).write_bytes(code.executable)
            (made / "threads.o").write_bytes(pool_object(model.target))
            _write_arrays(made / WEIGHTS, [*model.weights.values(), *state])
            text = description(model.entry, threads, weights=model.weights, **specs)
            (made / DESCRIPTION).write_text(text, encoding="utf-8")
            _write_texts(made, model.target, threads, specs, bool(libraries))
            _copy_runtime(made, libraries)
            os.rename(made, destination)
    except OSError as error:
        raise ArgumentError(
            "folder", str(folder), f"cannot be written; give another folder: {error}"
        ) from error


def _code(model: DeployableNetwork) -> MachineCode:
    if not backend_of(model.target).execution.on_host:
        kind = model.target.kind.name
        raise UnsupportedError(f"a network for {kind} cannot be exported", "tune it for a CPU")
    if model.code is None:
        family = architecture(model.target)
        raise UnsupportedError(
            f"the code of the network cannot be linked for {family} processors",
            "save the network and load the file on such a machine",
        )
    return model.code


def _libraries(target: Target, runtime: Folder | None) -> list[Path]:
    """TVM's runtime libraries for a target; none if they are unknown."""
    if runtime is not None:
        found = [Path(runtime, name) for name in RUNTIME_LIBRARIES]
        missing = [path.name for path in found if not path.is_file()]
        if missing:
            raise ArgumentError("runtime", str(runtime), f"give a folder with {', '.join(missing)}")
        return found
    if architecture(target) != architecture(Target("llvm")):
        return []
    installed = Path(tvm.__file__).parent / "lib" / RUNTIME_LIBRARIES[1]
    return [Path(tvm_ffi.libinfo.find_libtvm_ffi()), installed]


def _specs(
    model: DeployableNetwork, state: Sequence[Array], calling: Calling | None
) -> dict[str, Sequence[InputSpec]]:
    """Inputs, states and outputs."""
    outputs = output_specs(model.bare()[model.entry])
    count = len(model.inputs) - len(state)
    shown = outputs[: len(outputs) - len(state)]
    return {
        "inputs": model.inputs[:count],
        "states": model.inputs[count:],
        "outputs": named_outputs(shown, calling),
    }


def _destination(folder: Folder) -> Path:
    path = Path(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ArgumentError("folder", str(folder), "it has files; give a new folder")
    except OSError as error:
        raise ArgumentError(
            "folder", str(folder), f"cannot be written; give another folder: {error}"
        ) from error
    return path


def _write_arrays(path: Path, arrays: Sequence[Array]) -> None:
    with path.open("wb") as file:
        for array in arrays:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            file.write(data.data)
            file.write(bytes(aligned(data.nbytes) - data.nbytes))


def _write_texts(
    folder: Path,
    target: Target,
    threads: int,
    specs: Mapping[str, Sequence[InputSpec]],
    has_runtime: bool,
) -> None:
    texts = resources.files("ansor.frontend.deploy.export") / "files"
    for name in _TEXTS:
        (folder / name).write_bytes((texts / name).read_bytes())
    values = _readme_values(target, threads, specs, has_runtime)
    text = (texts / "README.md").read_text(encoding="utf-8")
    for word, value in values.items():
        text = text.replace(f"@{word}@", value)
    (folder / "README.md").write_text(text, encoding="utf-8")


def _readme_values(
    target: Target, threads: int, specs: Mapping[str, Sequence[InputSpec]], has_runtime: bool
) -> dict[str, str]:
    processor = target.attrs.get("mcpu") or architecture(target)
    tvm_version, ffi_version = version("apache-tvm"), version("apache-tvm-ffi")
    rows = {
        kind: "\n".join(f"| `{s.name}` | {s.dtype} | {list(s.shape)} |" for s in specs[kind])
        for kind in ("inputs", "outputs")
    }
    advice = "The folder `lib` has TVM's runtime libraries."
    if not has_runtime:
        advice = (
            f"The runtime libraries for {architecture(target)} processors are in the packages "
            f"`apache-tvm=={tvm_version}` and `apache-tvm-ffi=={ffi_version}` for this "
            f"architecture: copy {' and '.join(f'`{name}`' for name in RUNTIME_LIBRARIES)} to the "
            "folder `lib`, or pass their folder as `-DANSOR_RUNTIME=DIR`. A compiler for the "
            "architecture is `-DCMAKE_CXX_COMPILER=NAME`."
        )
    return {
        "SUMMARY": f"It is for {processor} ({architecture(target)}) and was tuned for {threads} "
        f"threads. It needs the runtime libraries of TVM {tvm_version}.",
        "INPUTS": rows["inputs"],
        "OUTPUTS": rows["outputs"],
        "FILES": " ".join(f"input{number}.bin" for number in range(len(specs["inputs"]))),
        "RUNTIME": advice,
        "FFI": f"=={ffi_version}",
    }


def _copy_runtime(folder: Path, libraries: Sequence[Path]) -> None:
    (folder / "lib").mkdir()
    for library in libraries:
        shutil.copyfile(library, folder / "lib" / library.name)
    headers: Any = Path(tvm_ffi.libinfo.find_include_path())
    for name in _HEADERS:
        shutil.copytree(headers / name, folder / "include" / name)
    licence = Path(tvm_ffi.__file__).parent.parent
    found = sorted(licence.glob("apache_tvm_ffi-*.dist-info/**/LICENSE"))
    for file in found[:1]:
        shutil.copyfile(file, folder / "include" / file.name)
