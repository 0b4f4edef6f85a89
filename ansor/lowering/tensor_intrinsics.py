"""Tensor intrinsics for tensor cores (wmma, 16 by 16 by 16): the operation of each instruction, and
its implementation, one or two calls.

A module of TVM has these and many more. It takes half a minute to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import tvm
from tvm.s_tir import TensorIntrin

from ansor.lowering import tf32
from ansor.program.roles import FRAGMENT, fragment_scope

_SHARED = "shared.dyn"
_TOTAL = "float32"
_ALL = f"0:{FRAGMENT}, 0:{FRAGMENT}"


@cache
def wmma_names(
    dtype: str, transposed: tuple[bool, bool], swapped: bool = False
) -> Mapping[str, str]:
    """The registered names of the intrinsics that load operands ("load_a", "load_b"), clear
    ("init"), multiply ("compute") and store ("store") tiles.

    Args:
        dtype: of the operands in dynamic shared memory. Operands in float32 are rounded to tf32.
            Sums are in float32.
        transposed: whether the left operand's tiles are depth by rows instead of rows by depth, and
            the right operand's tiles columns by depth instead of depth by columns.
        swapped: whether the right operand is the first factor of the products.
    """
    left, right = ("col_major" if turned else "row_major" for turned in transposed)
    pairs = {
        "load_a": _load("a", dtype, left),
        "load_b": _load("b", dtype, right),
        "init": _clear(dtype),
        "compute": _multiply(dtype, (left, right), swapped),
        "store": _store(dtype),
    }
    names = {}
    for role, (description, call) in pairs.items():
        form = ".".join([dtype, left, right, *["swapped"] * swapped])
        names[role] = f"ansor.wmma.{role}.{form}"
        TensorIntrin.register(names[role], _parsed(description), _parsed(call), override=True)
    return MappingProxyType(names)


Pair = tuple[list[str], list[str]]  # a description and a call, as lines of a function


def _parsed(lines: list[str]) -> tvm.tirx.PrimFunc:
    head = ["# from tvm.script import tirx as T", "@T.prim_func(s_tir=True)"]
    return tvm.script.from_source("\n".join([*head, *lines]))


def _buffer(name: str, dtype: str, scope: str, strided: bool = False) -> list[str]:
    """A tile of a buffer, with its strides as variables if a call needs them."""
    found, strides = [], ""
    if strided:
        found = [f"    {name}{i} = T.int32()" for i in (1, 0)]
        strides = f", strides=[{name}1, {name}0]"
    shape = f"({FRAGMENT}, {FRAGMENT})"
    about = f'"{dtype}", align=64, offset_factor={FRAGMENT}, scope="{scope}"{strides}'
    return [*found, f"    {name} = T.match_buffer({name.lower()}_handle, {shape}, {about})"]


def _function(names: str, buffers: list[list[str]], reads: str, body: list[str]) -> list[str]:
    """A function of tiles; it writes the last one."""
    parameters = ", ".join(f"{name.lower()}_handle: T.handle" for name in names)
    return [
        f"def tile({parameters}) -> None:",
        *(line for buffer in buffers for line in buffer),
        '    with T.sblock("root"):',
        f"        T.reads({', '.join(f'{name}[{_ALL}]' for name in reads)})",
        f"        T.writes({names[-1]}[{_ALL}])",
        *(f"        {line}" for line in body),
    ]


def _loops(variables: str, kinds: str, statement: str) -> list[str]:
    extents = ", ".join([str(FRAGMENT)] * len(variables))
    return [
        f"for {', '.join(variables)} in T.grid({extents}):",
        '    with T.sblock("element"):',
        f"        {', '.join(v * 2 for v in variables)} = "
        f'T.axis.remap("{kinds}", [{", ".join(variables)}])',
        f"        {statement}",
    ]


def _number(name: str) -> str:
    """The number of a tile among the fragments of a warp."""
    across = f"({name}1 // {FRAGMENT})"
    row = f"{name}.elem_offset // {name}1 // {FRAGMENT}"
    return f"{row} * {across} + {name}.elem_offset % {name}1 // {FRAGMENT}"


def _sizes(dtype: str) -> str:
    """Rows, columns and depth in the declaration of an instruction's result registers."""
    return tf32.SIZES if dtype == "float32" else f"{FRAGMENT}, {FRAGMENT}, {FRAGMENT}"


def _load(operand: str, dtype: str, layout: str) -> Pair:
    calls = [
        f"T.evaluate(T.tvm_load_matrix_sync(C.data, {_sizes(dtype)}, {_number('C')}, "
        f'A.access_ptr("r", ptr_type="{dtype}"), A1, "{layout}", dtype="void"))'
    ]
    if dtype == "float32":
        calls = tf32.load_calls(operand, layout, _number("C"))
    return _copy((dtype, _SHARED), (dtype, fragment_scope(operand, dtype)), calls)


def _store(dtype: str) -> Pair:
    call = (
        f"T.evaluate(T.tvm_store_matrix_sync(A.data, {_sizes(dtype)}, {_number('A')}, "
        f'C.access_ptr("w", ptr_type="{_TOTAL}"), C1, "row_major", dtype="void"))'
    )
    if dtype == "float32":
        call = tf32.store_call(f"A.data, {_number('A')}")
    return _copy((_TOTAL, "wmma.accumulator"), (_TOTAL, _SHARED), [call])


def _copy(source: tuple[str, str], target: tuple[str, str], calls: list[str]) -> Pair:
    """The statements that copy a tile between scopes."""
    plain, strided = (
        [_buffer("A", *source, with_strides), _buffer("C", *target, with_strides)]
        for with_strides in (False, True)
    )
    element = _loops("ij", "SS", "C[ii, jj] = A[ii, jj]")
    return _function("AC", plain, "A", element), _function("AC", strided, "A", calls)


def _clear(dtype: str) -> Pair:
    zero = f"T.{_TOTAL}(0)"
    given = f'C.data, {_sizes(dtype)}, {_number("C")}, {zero}, dtype="void"'
    call = f"T.evaluate(T.tvm_fill_fragment({given}))"
    plain, strided = ([_buffer("C", _TOTAL, "wmma.accumulator", s)] for s in (False, True))
    element = _loops("ij", "SS", f"C[ii, jj] = {zero}")
    return _function("C", plain, "", element), _function("C", strided, "", [call])


def _multiply(dtype: str, layouts: tuple[str, str], swapped: bool) -> Pair:
    factors = [
        "A[ii, kk]" if layouts[0] == "row_major" else "A[kk, ii]",
        "B[kk, jj]" if layouts[1] == "row_major" else "B[jj, kk]",
    ]
    if dtype != _TOTAL:
        factors = [f'T.Cast("{_TOTAL}", {factor})' for factor in factors]
    product = " * ".join(reversed(factors) if swapped else factors)
    element = _loops("ijk", "SSR", f"C[ii, jj] = C[ii, jj] + {product}")
    left, right, total = (f"{name}.data, {_number(name)}" for name in "ABC")
    call = f'T.evaluate(T.tvm_mma_sync({total}, {left}, {right}, {total}, dtype="void"))'
    if dtype == "float32":
        call = tf32.multiply_call(total, left, right)
    plain, strided = (
        [
            _buffer("A", dtype, fragment_scope("a", dtype), s),
            _buffer("B", dtype, fragment_scope("b", dtype), s),
            _buffer("C", _TOTAL, "wmma.accumulator", s),
        ]
        for s in (False, True)
    )
    reads = "CBA" if swapped else "CAB"
    return _function("ABC", plain, reads, element), _function("ABC", strided, "CAB", [call])
