"""Object files made into shared libraries by our own linker."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from ansor.linking.link import link
from ansor.linking.object_file import LinkError, read_object

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="links for x86-64")

_EXTERNAL = """
declare double @cbrt(double)
declare i64 @strlen(ptr)
@text = private constant [6 x i8] c"hello\\00"
@table = internal constant [2 x ptr] [ptr @text, ptr @counted]
@counted = global i32 7
@scale = internal global double 2.0

define double @scaled(double %x) {
  %root = call double @cbrt(double %x)
  %factor = load double, ptr @scale
  %result = fmul double %root, %factor
  ret double %result
}

define i64 @measure() {
  %place = load volatile ptr, ptr @table
  %size = call i64 @strlen(ptr %place)
  %at = getelementptr ptr, ptr @table, i64 1
  %other = load volatile ptr, ptr %at
  %number = load i32, ptr %other
  %wide = zext i32 %number to i64
  %sum = add i64 %size, %wide
  ret i64 %sum
}
"""


def test_functions_tables_and_other_libraries(tmp_path: Path) -> None:
    source, code, library = (tmp_path / name for name in ("a.ll", "a.o", "a.so"))
    source.write_text(_EXTERNAL)
    load = tvm.get_global_func("ffi.Module.load_from_file.ll")
    load(str(source), "ll").write_to_file(str(code), "o")
    library.write_bytes(link(code.read_bytes()))
    loaded = ctypes.CDLL(str(library))
    loaded.scaled.restype, loaded.scaled.argtypes = ctypes.c_double, [ctypes.c_double]
    assert loaded.scaled(27.0) == pytest.approx(6.0)
    assert loaded.measure() == 5 + 7
    assert ctypes.c_int.in_dll(loaded, "counted").value == 7


def test_a_kernel_with_transcendental_functions(tmp_path: Path) -> None:
    x = te.placeholder((37,), name="x")
    y = te.compute((37,), lambda i: te.exp(x[i]) + tirx.pow(x[i], 1.5), name="y")
    module = tvm.IRModule({"main": te.create_prim_func([x, y])})
    built = tvm.compile(module, tvm.target.Target("llvm")).mod
    code, library = tmp_path / "a.o", tmp_path / "a.so"
    built.write_to_file(str(code), "o")
    library.write_bytes(link(code.read_bytes()))
    loaded = tvm.runtime.load_module(str(library))
    values = np.linspace(0, 3, 37, dtype=np.float32)
    result = tvm.runtime.tensor(np.zeros(37, np.float32))
    loaded["main"](tvm.runtime.tensor(values), result)
    np.testing.assert_allclose(result.numpy(), np.exp(values) + values**1.5, rtol=1e-5)


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01".ljust(64, b"\0"), b"hello".ljust(64, b"\0")])
def test_what_is_no_object_file(data: bytes) -> None:
    with pytest.raises(LinkError, match="not an object file"):
        read_object(data)
