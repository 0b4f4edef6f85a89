"""Products in float32 rounded to tf32: their results, and the functions of a warp."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from cuda_compiler import compile_source, cuda_source
from gpu import (
    CONFIG,
    GPU,
    TF32_GPU,
    TF32_TARGET,
    legal_sample,
    on_cpu,
    on_tensor_cores,
    sketches_of,
    tensor_product,
    tensor_sketch,
)
from tvm import tirx
from tvm.ir.instrument import pass_instrument

from ansor.cost_model.scorer import seconds
from ansor.features.profile import profile
from ansor.lowering import tf32
from ansor.lowering.lower import lower
from ansor.program.nest import build_nest
from ansor.targets.build import ENTRY, compile_function, pass_context
from ansor.targets.cuda.draft.draft import draft_for_gpu
from ansor.targets.cuda.kernels import kernels
from ansor.workloads import build as workload

PROGRAMS = int(os.environ.get("ANSOR_CUDA_PROGRAMS", "1"))  # `make check-cuda` asks for many
PRODUCTS = ("right", "left", "relu", "swapped", "odd", "conv")
FUNCTIONS = ("ansor_load_tf32", "ansor_multiply_tf32", "ansor_store_tf32")
INSTRUCTION = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
Matrix = npt.NDArray[np.float32]


@pytest.mark.parametrize("name", PRODUCTS)
def test_tiles_compute_the_product(name: str) -> None:
    func, rng = tensor_product(name, "float32"), np.random.default_rng(0)
    shapes = [tuple(int(n) for n in parameter.shape) for parameter in func.params]
    arrays = [tvm.runtime.tensor(rng.uniform(-1, 1, s).astype(np.float32)) for s in shapes]

    def result(made: tirx.PrimFunc) -> Matrix:
        filled = tvm.runtime.tensor(np.full(shapes[-1], np.nan, dtype=np.float32))
        compile_function(made, "llvm")[ENTRY](*arrays[:-1], filled)
        out: Matrix = filled.numpy()
        return out

    expected, population = result(func), legal_sample(tensor_sketch(name, "float32"), 2)
    for row in range(len(population)):
        found = result(on_cpu(func, population.program(row)))
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", PRODUCTS)
def test_programs_become_instructions_of_tensor_cores(name: str) -> None:
    population = legal_sample(tensor_sketch(name, "float32"), PROGRAMS, seed=1)
    (kernel,) = kernels(build_nest(population))
    for row in range(len(population)):
        func = lower(tensor_product(name, "float32"), population.program(row))
        source = cuda_source(func, TF32_TARGET)
        assert all(source.count(f"void {function}(") == 1 for function in FUNCTIONS)
        assert INSTRUCTION in source
        assert "__float_to_tf32" in source
        assert f"__launch_bounds__({kernel.threads[row]})" in source
        (use,) = compile_source(source, GPU.arch)
        assert max(use.spill_bytes, use.stack_bytes) <= 16


def test_shared_memory_is_what_was_computed_but_for_what_the_result_takes_over() -> None:
    population, found = legal_sample(tensor_sketch("relu", "float32"), 3), []

    @pass_instrument
    class Declared:
        """Notes the dynamic shared memory of a kernel."""

        def run_after_pass(self, mod: tvm.IRModule, info: Any) -> None:
            if info.name.endswith("MergeSharedMemoryAllocations"):
                text = str(mod.script())
                found.extend(map(int, re.findall(r'\((\d+),\), "uint8", scope="shared.dyn"', text)))

    (kernel,) = kernels(build_nest(population))
    for row in range(len(population)):
        func = lower(tensor_product("relu", "float32"), population.program(row))
        with pass_context([func]):
            config = dict(tvm.transform.PassContext.current().config)
        module = tvm.IRModule({ENTRY: func.with_attr("global_symbol", ENTRY)})
        with tvm.transform.PassContext(opt_level=3, config=config, instruments=[Declared()]):
            tvm.compile(module, tvm.target.Target(TF32_TARGET))
    result = 64 * 128 * 4 // kernel.blocks
    assert len(found) == 3
    assert (np.array(found) <= kernel.shared_bytes).all()
    assert (np.array(found) >= np.maximum(kernel.shared_bytes - result, result)).all()


def test_what_a_warp_loads_is_what_was_fetched_ahead() -> None:
    population = legal_sample(tensor_sketch("relu", "float32"), 4096)
    programs = map(population.program, range(len(population)))
    asked = {"C.ahead": 2, "C.k": 6, "C.unroll": 0}
    program = next(p for p in programs if all(p.values[d][0] == n for d, n in asked.items()))
    source = cuda_source(lower(tensor_product("relu", "float32"), program), TF32_TARGET)
    loads = [line for line in source.splitlines() if "  ansor_load_tf32(" in line]
    assert any("% 3" in line for line in loads)  # one of three buffers


def test_it_has_to_be_asked_for() -> None:
    assert not any(map(on_tensor_cores, sketches_of(tensor_product("plain", "float32"), GPU)))


def test_rows_and_vectors_of_words() -> None:
    sketch = tensor_sketch("plain", "float32")
    tables = {d.name: d.table[:, 0].tolist() for d in sketch.decisions}
    assert tables["C.A.shared.pad"] == [0, 1]  # a warp takes eight rows of four words
    assert tables["C.B.shared.pad"] == [0, 2]  # four rows of eight
    assert tables["C.A.shared.fetch"] == list(CONFIG.gpu.vector_widths)


def test_the_draft_knows_the_speed() -> None:
    """A large product is drafted twice as fast as without tensor cores, within their peak."""
    best = {}
    sizes = {"rows": 2048, "columns": 2048, "depth": 2048}
    for gpu in (GPU, TF32_GPU):
        for sketch in sketches_of(workload("matmul", **sizes).func, gpu):
            nest = build_nest(legal_sample(sketch, 256))
            fastest = float(seconds(draft_for_gpu(nest, profile(nest), gpu)).min())
            best[on_tensor_cores(sketch)] = min(best.get(on_tensor_cores(sketch), 1.0), fastest)
    assert 2 * 2048**3 / (TF32_GPU.peak_flops * 4) < best[True] < best[False] / 2


# One thread after the other: instructions are carried out once all have said what they hold.
HARNESS = """
#include <cstdint>
#include <cstring>
#include <vector>
#define __forceinline__ inline
#define __device__
struct { int x; } threadIdx;
struct float2 { float x, y; };
float2 make_float2(float x, float y) { return {x, y}; }
namespace nvcuda { namespace wmma {
struct accumulator;
template <typename Use, int M, int N, int K, typename T> struct fragment { T x[8]; };
float __float_to_tf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x1000) & ~uint32_t(0x1fff);
  std::memcpy(&value, &bits, 4);
  return value;
}
}}
struct Held { float *c[4], a[4], b[2]; };
std::vector<Held> held[32];
void instruction(float& c0, float& c1, float& c2, float& c3, float a0, float a1, float a2, float a3,
                 float b0, float b1) {
  held[threadIdx.x].push_back({{&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, {b0, b1}});
}
// PTX ISA, "Matrix Fragments for mma.m16n8k8", .tf32
void carry_out() {
  for (size_t call = 0; call < held[0].size(); ++call) {
    float a[16][8], b[8][8];
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, in_group = lane % 4;
      for (int i = 0; i < 4; ++i)
        a[i == 0 || i == 2 ? group : group + 8][i < 2 ? in_group : in_group + 4] =
            held[lane][call].a[i];
      for (int i = 0; i < 2; ++i) b[in_group + 4 * i][group] = held[lane][call].b[i];
    }
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        int row = i < 2 ? lane >> 2 : (lane >> 2) + 8, column = lane % 4 * 2 + (i & 1);
        for (int k = 0; k < 8; ++k) *held[lane][call].c[i] += a[row][k] * b[k][column];
      }
  }
}
FUNCTIONS
typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> Tile;
extern "C" void product(const float* a, int a_apart, int a_deeper,
                        const float* b, int b_apart, int b_deeper, float* c, int stride) {
  static Tile left[32][2], right[32][2], sum[32][2];
  for (int& lane = threadIdx.x = 0; lane < 32; ++lane) {
    for (float& value : sum[lane][1].x) value = 0;
    ansor_load_tf32(left[lane], 1, a, a_apart, a_deeper);
    ansor_load_tf32(right[lane], 0, b, b_apart, b_deeper);
    ansor_multiply_tf32(sum[lane], 1, left[lane], 1, right[lane], 0);
  }
  carry_out();
  for (int& lane = threadIdx.x = 0; lane < 32; ++lane) {
    held[lane].clear();
    ansor_store_tf32(c, stride, sum[lane], 1);
  }
}
"""


@pytest.fixture(scope="module")
def warp(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions, compiled for this machine's processor."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("warp")
    functions = "".join((tf32._LOAD, tf32._MULTIPLY, tf32._STORE))
    source = HARNESS.replace(
        "FUNCTIONS", re.sub(r"asm volatile\((.*?)\);", _called, functions, flags=re.S)
    )
    (folder / "warp.cc").write_text(source)
    flags = ["-std=c++17", "-shared", "-fPIC", "-w", "-o", str(folder / "warp.so")]
    subprocess.run([compiler, *flags, str(folder / "warp.cc")], check=True)
    return ctypes.CDLL(str(folder / "warp.so")).product


def _called(statement: re.Match[str]) -> str:
    """An instruction as a call with its registers in the order of their numbers."""
    text, inputs = statement.group(1), r'"\+?[fr]"\((?:__float_as_uint\()?([^()]+)\)'
    assert INSTRUCTION in text
    assert "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" in text
    return f"instruction({', '.join(re.findall(inputs, text))});"


@pytest.mark.parametrize("right", ["row_major", "col_major"])
@pytest.mark.parametrize("left", ["row_major", "col_major"])
def test_a_warp_multiplies_tiles(warp: Any, left: str, right: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, (16, 20)).astype(np.float32) for _ in range(2))
    c = np.zeros((16, 18), np.float32)
    layouts = [strides(operand, layout) for operand, layout in (("a", left), ("b", right))]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, c)]
    warp(pointers[0], *layouts[0], pointers[1], *layouts[1], pointers[2], 18)
    rows, columns = a[:, :16], b[:, :16]
    expected = (rows if left == "row_major" else rows.T) @ (
        columns if right == "row_major" else columns.T
    )
    assert np.array_equal(c[:, :16], expected)
    assert not c[:, 16:].any()


def strides(operand: str, layout: str) -> list[int]:
    """Strides in the load of a tile whose rows have a distance of 20 elements."""
    (_, call) = tf32.load_calls(operand, layout, "0")
    (found,) = re.findall(r'ptr_type="float32"\), (\w+), (\w+), source_code', call)
    return [{"A1": 20, "1": 1}[stride] for stride in found]


def test_operands_are_rounded(warp: Any) -> None:
    a, c = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    a[:, 0] = 1 + np.arange(16) * 2.0**-13
    one = np.eye(16, dtype=np.float32)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, one, c)]
    warp(pointers[0], 16, 1, pointers[1], 1, 16, pointers[2], 16)
    assert np.array_equal(c[:, 0], 1 + (np.arange(16) + 4) // 8 * 2.0**-10)
