"""Loops in LLVM's language that repeat one instruction.

A loop is a function of memory and of a number of rounds. In each round it adds once to each sum.
The sums are in registers of `size` bytes, and at the begin of the memory. The operands follow. The
signatures of the intrinsics are those of LLVM's `IntrinsicsX86.td`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

TILES = 8  # of a core; a tile has 16 rows of 64 bytes
TILE_BYTES = 1024
TILE_SUMS = 4  # products of two left and two right tiles
_ROW_BYTES = 64
_CONFIGURATION = "ansor_peak_tiles"


def dot_loop(name: str, size: int, sums: int) -> str:
    """A loop over one instruction, such as `vpdpbusd` or `sdot`, on registers of `size` bytes.

    Args:
        name: of the instruction.
        size: of a register, in bytes.
        sums: registers of sums.
    """
    lanes, bits = size // 4, 8 * size
    is_short = name in ("vdpbf16ps", "bfdot")  # bfloat16, sums in float32
    total = f"<{lanes} x float>" if is_short else f"<{lanes} x i32>"
    operand = f"<{2 * lanes} x bfloat>" if is_short else f"<{4 * lanes} x i8>"
    neon = "v4f32.v8bf16" if is_short else "v4i32.v16i8"
    called = {
        "vdpbf16ps": f"@llvm.x86.avx512bf16.dpbf16ps.{bits}",
        "vpdpbusd": f"@llvm.x86.avx512.vpdpbusd.{bits}",
    }.get(name, f"@llvm.aarch64.neon.{name}.{neon}")
    loads = [_load(f"%{side}", operand, size * (sums + i)) for i, side in enumerate("lr")]

    def add(number: int) -> list[str]:
        operands = f"{total} %sum{number}, {operand} %l, {operand} %r"
        return [f"  %new{number} = call {total} {called}({operands})"]

    declared = f"declare {total} {called}({total}, {operand}, {operand})"
    return "\n".join([declared, *_loop(name, total, size, sums, loads, add)])


_PAIRS = {  # by the size of a register
    32: ("@llvm.x86.avx2.pmadd.ub.sw", "@llvm.x86.avx2.pmadd.wd"),
    64: ("@llvm.x86.avx512.pmaddubs.w.512", "@llvm.x86.avx512.pmaddw.d.512"),
}


def pairs_loop(name: str, size: int, sums: int) -> str:
    """A loop over `vpmaddubsw`, `vpmaddwd` and `vpaddd`, which are one step on processors without a
    single instruction for it.

    Each step loads its left operand anew. Otherwise a compiler would multiply only once.
    """
    lanes = size // 4
    total, halves, operand = f"<{lanes} x i32>", f"<{2 * lanes} x i16>", f"<{4 * lanes} x i8>"
    first, second = _PAIRS[size]
    ones = f"<{', '.join(['i16 1'] * 2 * lanes)}>"

    def add(number: int) -> list[str]:
        n, where = number, f"ptr %memory, i64 {size * sums}"
        return [
            f"  %place{n} = getelementptr i8, {where}",
            f"  %l{n} = load volatile {operand}, ptr %place{n}, align 4",
            f"  %pairs{n} = call {halves} {first}({operand} %l{n}, {operand} %r)",
            f"  %fours{n} = call {total} {second}({halves} %pairs{n}, {halves} {ones})",
            f"  %new{n} = add {total} %sum{n}, %fours{n}",
        ]

    declared = [
        f"declare {halves} {first}({operand}, {operand})",
        f"declare {total} {second}({halves}, {halves})",
    ]
    loads = [_load("%r", operand, size * (sums + 1))]
    return "\n".join([*declared, *_loop(name, total, size, sums, loads, add)])


def halves_loop(name: str, size: int, sums: int) -> str:
    """A loop over two `vpmaddwd` and `vpaddd`, of even and of odd elements.

    A kernel widens bytes to these elements once for several sums. Each step loads them anew, as in
    `pairs_loop`.
    """
    lanes = size // 4
    total, halves = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
    _, called = _PAIRS[size]

    def add(number: int) -> list[str]:
        n = number
        lines = [f"  %place{n} = getelementptr i8, ptr %memory, i64 {size * sums}"]
        for part, before, after in (
            ("even", f"%sum{n}", f"%most{n}"),
            ("odd", f"%most{n}", f"%new{n}"),
        ):
            made = f"%{part}{n}"
            lines += [
                f"  {made} = load volatile {halves}, ptr %place{n}, align 4",
                f"  {made}.products = call {total} {called}({halves} {made}, {halves} %r)",
                f"  {after} = add {total} {before}, {made}.products",
            ]
        return lines

    declared = f"declare {total} {called}({halves}, {halves})"
    loads = [_load("%r", halves, size * (sums + 1))]
    return "\n".join([declared, *_loop(name, total, size, sums, loads, add)])


def tile_loop(name: str, size: int, sums: int) -> str:
    """A loop over an instruction on tiles, such as `tdpbf16ps`: 2 × 2 products of tiles."""
    tiles, row = range(sums, TILES), _ROW_BYTES
    left, right = tiles[: len(tiles) // 2], tiles[len(tiles) // 2 :]
    pairs = [(a, b) for a in left for b in right]
    address = [f"  %at{t} = getelementptr i8, ptr %memory, i64 {size * t}" for t in range(TILES)]
    start = [
        f"  call void @llvm.x86.ldtilecfg(ptr @{_CONFIGURATION})",
        *address,
        *(f"  call void @llvm.x86.tilezero(i8 {t})" for t in range(sums)),
        *(f"  call void @llvm.x86.tileloadd64(i8 {t}, ptr %at{t}, i64 {row})" for t in tiles),
    ]
    steps = [
        f"  call void @llvm.x86.{name}(i8 {t}, i8 {a}, i8 {b})" for t, (a, b) in enumerate(pairs)
    ]
    end = [
        *(
            f"  call void @llvm.x86.tilestored64(i8 {t}, ptr %at{t}, i64 {row})"
            for t in range(sums)
        ),
        "  call void @llvm.x86.tilerelease()",
    ]
    return "\n".join([*_tile_declarations(name), *_function(name, start, [], steps, end)])


LOOPS: Mapping[str, Callable[[str, int, int], str]] = MappingProxyType(
    {
        "vdpbf16ps": dot_loop,
        "vpdpbusd": dot_loop,
        "vpmaddubsw": pairs_loop,
        "vpmaddwd": halves_loop,
        **dict.fromkeys(("bfdot", "sdot", "udot", "usdot"), dot_loop),
        "tdpbf16ps": tile_loop,
        "tdpbusd": tile_loop,
    }
)


def function_name(instruction: str) -> str:
    """The symbol of an instruction's loop, a function of a pointer and an `i64`."""
    return f"ansor_peak_{instruction}"


def _load(variable: str, kind: str, offset: int) -> str:
    """A vector from memory, by its offset in bytes."""
    place = f"{variable}.at"
    return "\n".join(
        [
            f"  {place} = getelementptr i8, ptr %memory, i64 {offset}",
            f"  {variable} = load {kind}, ptr {place}, align 4",
        ]
    )


def _loop(
    name: str, total: str, size: int, sums: int, loads: list[str], add: Callable[[int], list[str]]
) -> list[str]:
    """A loop with its sums in vector registers. Sums with different initial values are not
    merged."""
    start = [*loads, *(_load(f"%first{n}", total, size * n) for n in range(sums))]
    phis = [
        f"  %sum{n} = phi {total} [ %first{n}, %entry ], [ %new{n}, %loop ]" for n in range(sums)
    ]
    end = [f"  store {total} %new{n}, ptr %first{n}.at, align 4" for n in range(sums)]
    return _function(name, start, phis, [line for n in range(sums) for line in add(n)], end)


def _function(
    name: str, start: list[str], phis: list[str], steps: list[str], end: list[str]
) -> list[str]:
    """The function of a loop: statements before it, in it and after it."""
    head = f"define linkonce_odr void @{function_name(name)}(ptr %memory, i64 %rounds)"
    return [
        f"{head} alwaysinline nounwind {{",
        "entry:",
        *start,
        "  br label %loop",
        "loop:",
        "  %round = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *phis,
        *steps,
        "  %next = add i64 %round, 1",
        "  %more = icmp ult i64 %next, %rounds",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *end,
        "  ret void",
        "}",
    ]


def _tile_declarations(name: str) -> list[str]:
    """The intrinsics, and the configuration of eight whole tiles (Intel's manual of instructions,
    volume 2, LDTILECFG)."""
    columns, rows = _ROW_BYTES.to_bytes(2, "little") * TILES, bytes([16] * TILES)
    content = (b"\x01".ljust(16, b"\0") + columns).ljust(48, b"\0") + rows
    text = "".join(f"\\{byte:02X}" for byte in content.ljust(64, b"\0"))
    return [
        f'@{_CONFIGURATION} = private constant [64 x i8] c"{text}"',
        "declare void @llvm.x86.ldtilecfg(ptr)",
        "declare void @llvm.x86.tilezero(i8)",
        "declare void @llvm.x86.tileloadd64(i8, ptr, i64)",
        "declare void @llvm.x86.tilestored64(i8, ptr, i64)",
        "declare void @llvm.x86.tilerelease()",
        f"declare void @llvm.x86.{name}(i8, i8, i8)",
    ]
