"""float32 operands on tensor cores, rounded to tf32: CUDA functions that stand for TVM's calls of
wmma, which take no such operands.

An instruction multiplies 16 by 8 and 8 by 8 (PTX ISA, "Matrix Fragments for mma.m16n8k8"), so a
tile of 16 by 16 by 16 takes four. A tile of an operand needs eight registers of each thread. TVM
declares as many for tiles of results, and this declaration serves for operands, too.

Let ``group, own = lane / 4, lane % 4``. Register ``2 * chunk + half`` of an operand's tile holds
the element in row ``8 * half + group`` at depth ``4 * chunk + own``. For the right operand, the row
is a column. An instruction takes two chunks.
"""

from __future__ import annotations

SIZES = "16, 16, 8"  # rows, columns and depth of the registers that TVM declares

_TILE = f"nvcuda::wmma::fragment<nvcuda::wmma::accumulator, {SIZES}, float>"
_LOAD = f"""
__forceinline__ __device__ void ansor_load_tf32(
    {_TILE}* tiles, int number, const float* from, int apart, int deeper) {{
  int group = threadIdx.x / 4, own = threadIdx.x % 4;
  #pragma unroll
  for (int i = 0; i < 8; ++i)
    tiles[number].x[i] = nvcuda::wmma::__float_to_tf32(
        from[(i % 2 * 8 + group) * apart + (i / 2 * 4 + own) * deeper]);
}}
"""
_MULTIPLY = f"""
__forceinline__ __device__ void ansor_multiply_tf32(
    {_TILE}* sums, int sum, const {_TILE}* lefts, int left, const {_TILE}* rights, int right) {{
  #pragma unroll
  for (int i = 0; i < 4; ++i) {{
    const float *a = lefts[left].x + i / 2 * 4, *b = rights[right].x + i / 2 * 4 + i % 2;
    float* c = sums[sum].x + i % 2 * 4;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[2])));
  }}
}}
"""
_STORE = f"""
__forceinline__ __device__ void ansor_store_tf32(
    float* to, int stride, const {_TILE}* tiles, int number) {{
  int group = threadIdx.x / 4, own = threadIdx.x % 4;
  #pragma unroll
  for (int i = 0; i < 8; i += 2)
    *reinterpret_cast<float2*>(to + (i / 2 % 2 * 8 + group) * stride + i / 4 * 8 + own * 2) =
        make_float2(tiles[number].x[i], tiles[number].x[i + 1]);
}}
"""


def load_calls(operand: str, layout: str, number: str) -> list[str]:
    """Statements that load tile `number` of C from A, of the left ("a") or the right ("b") operand.

    TVM takes the size of registers from the statement that fills them. The compiler removes it.
    """
    deep = (operand == "a") == (layout == "row_major")  # depth runs along memory
    fill = f'T.tvm_fill_fragment(C.data, {SIZES}, {number}, T.float32(0), dtype="void")'
    pointer, strides = 'A.access_ptr("r", ptr_type="float32")', "A1, 1" if deep else "1, A1"
    load = _call("ansor_load_tf32", _LOAD, "C.data", number, pointer, strides)
    return [f"T.evaluate({fill})", load]


def multiply_call(total: str, left: str, right: str) -> str:
    """The statement that adds the product of two tiles to a third; each an array and a number."""
    return _call("ansor_multiply_tf32", _MULTIPLY, total, left, right)


def store_call(tile: str) -> str:
    """The statement that stores a tile, an array and a number, to C."""
    pointer = 'C.access_ptr("w", ptr_type="float32")'
    return _call("ansor_store_tf32", _STORE, pointer, "C1", tile)


def _call(function: str, source: str, *arguments: str) -> str:
    given = ", ".join(arguments)
    return f'T.evaluate(T.cuda.func_call("{function}", {given}, source_code={source!r}))'
