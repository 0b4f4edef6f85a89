"""Exported networks in C++, C and Python compute the same as here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import exported
import numpy as np
import pytest
from tvm.target import Target

import ansor
from ansor.cli.main import main
from ansor.errors import ArgumentError, UnsupportedError
from ansor.frontend import compile_model
from ansor.frontend.deploy.built import uncompiled
from ansor.frontend.deploy.export.write import RUNTIME_LIBRARIES, export_network
from ansor.targets.host.thread_pool_code import MAX_WORKERS

needs_compiler = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("c++")), reason="needs CMake and a C++ compiler"
)

# Calls the interface in C: two runs with state, a reset and one more run; then sessions in threads.
RUN_C = """
import ctypes, os, sys, threading
library, folder, *paths = sys.argv[1:]
lib = ctypes.CDLL(library)
lib.ansor_last_error.restype = ctypes.c_char_p
lib.ansor_num_outputs.restype = ctypes.c_size_t

class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("dimensions", ctypes.c_size_t),
                ("bytes", ctypes.c_size_t)]

class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]

lib.ansor_output.restype = lib.ansor_input.restype = ctypes.POINTER(Tensor)

def checked(status):
    assert status == 0, lib.ansor_last_error()

def buffers(memories):
    pairs = [Buffer(ctypes.addressof(m), len(m)) for m in memories]
    return (Buffer * len(pairs))(*pairs), len(pairs)

network = ctypes.c_void_p()
checked(lib.ansor_network_open(os.fsencode(folder), 2, ctypes.byref(network)))
count = lib.ansor_num_outputs(network)
shown = [lib.ansor_output(network, i).contents for i in range(count)]
sizes = [t.bytes for t in shown]
print([(t.name.decode(), t.dtype.decode(), t.shape[:t.dimensions], t.bytes) for t in shown])
assert not lib.ansor_output(network, count) and not lib.ansor_input(network, 99)
given = [bytearray(1) + bytearray(open(path, "rb").read()) for path in paths]
inputs = [(ctypes.c_char * (len(b) - 1)).from_buffer(b, 1) for b in given]  # not aligned

def opened():
    session = ctypes.c_void_p()
    checked(lib.ansor_session_open(network, ctypes.byref(session)))
    return session

def results(session):
    outputs = [ctypes.create_string_buffer(size) for size in sizes]
    checked(lib.ansor_session_run(session, *buffers(inputs), *buffers(outputs)))
    return [m.raw for m in outputs]

session = opened()
first, second = results(session), results(session)
checked(lib.ansor_session_reset(session))
assert results(session) == first
print([m.hex() for m in second][-1][:16])
found = []
def many():
    own = opened()
    found.append(results(own))
    found.append(results(own))
    lib.ansor_session_close(own)
threads = [threading.Thread(target=many) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
assert sorted(found) == sorted([first, second] * 3)

def fails(text, status):
    assert status and text in lib.ansor_last_error(), lib.ansor_last_error()

outputs = [ctypes.create_string_buffer(size) for size in sizes]
short = [*outputs[:-1], ctypes.create_string_buffer(1)]
fails(b"buffers", lib.ansor_session_run(session, *buffers(inputs[1:]), *buffers(outputs)))
fails(b"1 bytes; it has", lib.ansor_session_run(session, *buffers(inputs), *buffers(short)))
fails(b"null", lib.ansor_session_run(None, *buffers(inputs), *buffers(outputs)))
missing, number = buffers(outputs)
missing[0].data = None
fails(b"null", lib.ansor_session_run(session, *buffers(inputs), missing, number))
fails(b"null", lib.ansor_session_open(network, None))
checked(lib.ansor_session_reset(session))
lib.ansor_network_close(network)  # sessions keep what they need
assert results(session) == first
child = os.fork()  # has none of the threads
if not child:
    checked(lib.ansor_session_reset(session))
    os._exit(results(session) != first)
assert os.waitpid(child, 0)[1] == 0
lib.ansor_session_close(session)
assert len(os.listdir("/proc/self/task")) == 2  # the pool's thread
assert "libtvm_compiler" not in open("/proc/self/maps").read()
"""


@pytest.fixture(scope="module")
def tuned() -> ansor.TunedModel:
    return ansor.auto_schedule(exported.many_dtypes(), trials=0, threads=2, check_import=False)


def test_the_network_agrees_with_numpy(tuned: ansor.TunedModel) -> None:
    """The tests of programs compare their results with those of this network."""
    arrays = exported.inputs()
    exported.check_against_numpy(tuned(*arrays), arrays)


@pytest.fixture(scope="module")
def folder(tuned: ansor.TunedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("exported") / "network"
    tuned.export(made)
    return made


@pytest.fixture(scope="module")
def programs(folder: Path) -> Path:
    return exported.build(folder)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return exported.files_of(exported.inputs(), tmp_path)


def written(prefix: Path, count: int = 5) -> list[bytes]:
    return [prefix.with_name(f"{prefix.name}{i}.bin").read_bytes() for i in range(count)]


class TestPrograms:
    @needs_compiler
    def test_cpp_in_two_sessions(
        self, tuned: ansor.TunedModel, folder: Path, programs: Path, paths: list[Path]
    ) -> None:
        expected = exported.bytes_of(tuned(*exported.inputs()))
        prefix = paths[0].with_name("out")
        exported.run([programs / "run", folder, *paths, "--out", prefix, "--sessions", "2"])
        assert written(prefix) == expected
        assert written(prefix.with_name("outs1-")) == expected

    def test_python(self, tuned: ansor.TunedModel, folder: Path, paths: list[Path]) -> None:
        prefix = paths[0].with_name("out")
        exported.in_python(folder, *paths, "--out", prefix)
        assert written(prefix) == exported.bytes_of(tuned(*exported.inputs()))

    @needs_compiler
    def test_the_interface_in_c(self, folder: Path, programs: Path, paths: list[Path]) -> None:
        library = programs / "libansor_network.so"
        found = exported.run([sys.executable, "-c", RUN_C, library, folder, *paths])
        assert "('output2', 'bfloat16', [256, 128], 65536)" in found
        assert "('output3', 'bool', [256, 128], 32768)" in found

    @needs_compiler
    def test_what_a_network_keeps_between_calls(self, programs: Path, tmp_path: Path) -> None:
        network = compile_model(exported.with_state(), Target("llvm"), threads=2).complete
        export_network(network, [np.zeros(2, np.float32)], None, 2, tmp_path / "counter")
        paths = exported.files_of([np.array([1, 2], np.float32)], tmp_path)
        library = programs / "libansor_network.so"
        command = [sys.executable, "-c", RUN_C, library, tmp_path / "counter", *paths]
        found = exported.run(command)
        assert "[('output0', 'float32', [2], 8)]" in found
        assert np.array([2, 4], np.float32).tobytes().hex() in found  # what the second call returns

    @needs_compiler
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["nowhere"], "nowhere/network.txt: cannot be read"),
            (["FOLDER"], "give 5 input buffers"),
            (["FOLDER", "small", "x", "keep", "half", "index"], "input x: 32768 bytes; it has 262"),
            (["FOLDER", "--threads", str(MAX_WORKERS + 2)], "threads: give 0 to 256"),
            (["FOLDER", "--fast", "1"], "unknown option --fast"),
            (["FOLDER", "missing"], "missing.bin: cannot be read"),
        ],
    )
    def test_bad_arguments(
        self, words: list[str], message: str, folder: Path, programs: Path, paths: list[Path]
    ) -> None:
        files = dict(zip(exported.INPUTS, paths, strict=True))
        files |= {"FOLDER": folder, "missing": paths[0].with_name("missing.bin")}
        command = [programs / "run", *(files.get(word, word) for word in words)]
        assert message in exported.run(command, status=1)

    @pytest.mark.parametrize("compiler", [("c99", "cc", "c"), ("c++17", "c++", "c++")])
    def test_the_header(self, compiler: tuple[str, str, str], folder: Path) -> None:
        standard, name, language = compiler
        if not shutil.which(name):
            pytest.skip(f"needs {name}")
        flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", f"-std={standard}"]
        subprocess.run([name, "-x", language, *flags, folder / "ansor_network.h"], check=True)


class TestFolder:
    def test_the_command(self, tuned: ansor.TunedModel, tmp_path: Path, folder: Path) -> None:
        tuned.save(tmp_path / "network.ansor")
        words = ["export", str(tmp_path / "network.ansor"), str(tmp_path / "made")]
        main(words, standalone_mode=False)
        for name in ("network.txt", "libnetwork.so", "network.vm", "weights.bin", "threads.o"):
            assert (tmp_path / "made" / name).read_bytes() == (folder / name).read_bytes()

    def test_nothing_of_the_compiler_is_there(self, folder: Path) -> None:
        libraries = {path.name for path in folder.rglob("*.so*")} - {"libansor_network.so"}
        assert libraries == {"libnetwork.so", *RUNTIME_LIBRARIES}

    def test_the_readme_is_complete(self, folder: Path) -> None:
        text = (folder / "README.md").read_text()
        assert "@" not in text
        assert "| `half` | bfloat16 | [256, 128] |" in text

    def test_a_folder_with_files_is_left_alone(self, tuned: ansor.TunedModel, folder: Path) -> None:
        with pytest.raises(ArgumentError, match="it has files; give a new folder"):
            tuned.export(folder)

    def test_a_runtime_that_lacks_libraries(self, tuned: ansor.TunedModel, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match=r"folder with libtvm_ffi.so, libtvm_runtime.so"):
            tuned.export(tmp_path / "made", runtime=tmp_path)
        assert not (tmp_path / "made").exists()

    def test_a_network_for_a_gpu(self, tmp_path: Path) -> None:
        network = uncompiled(exported.many_dtypes(), Target({"kind": "cuda", "arch": "sm_80"}))
        with pytest.raises(UnsupportedError, match="a network for cuda cannot be exported"):
            export_network(network, (), None, 1, tmp_path / "made")
